#!/bin/bash
set -e
cd /work
echo 'int main(int n, char **v) { char a[2] = {0}; return a[n]; }' >a.c
gcc -g -fsanitize=address,undefined -o a a.c
./a && echo fine
./a one 2>&1 | grep -o 'index 2 out of bounds for type' | head -n 1
