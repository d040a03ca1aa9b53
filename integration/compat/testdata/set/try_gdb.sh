#!/bin/bash
set -e
cd /work
gcc -g -x c -o a - <<'C'
int twice(int n) { return n * 2; }
int main(void) { return twice(21); }
C
gdb -q -batch -ex 'break twice' -ex run -ex 'print n' -ex finish -ex continue ./a >log 2>&1 || cat log
grep -o -e '^$1 = .*' -e '^Value returned is .*' -e 'exited with code .*' log
