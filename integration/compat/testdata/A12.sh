#!/bin/sh
# A12: test -w / make through faccessat2. With faccessat2 answered EPERM, "test -w" says no, make
# says "/bin/sh: Operation not permitted", package managers cannot find their own directories -
# though the file rights are fine.
d=$(mktemp -d) || { echo "FAIL: no scratch"; exit 1; }
: >"$d/f"
for t in "-r $d/f" "-w $d/f" "-x /bin/sh" "-w $d"; do
  for sh in sh bash dash; do
    command -v $sh >/dev/null 2>&1 || continue
    $sh -c "[ $t ]" || { echo "FAIL: $sh: test $t"; exit 1; }
  done
done
if command -v make >/dev/null 2>&1; then
  printf 'all:\n\t@echo built\n' >"$d/Makefile"
  [ "$(make -s -C "$d" 2>&1)" = built ] || { echo "FAIL: make"; exit 1; }
fi
if command -v python3 >/dev/null 2>&1; then
  python3 -c "import os,sys; sys.exit(not os.access('$d/f', os.W_OK, effective_ids=True))" || { echo "FAIL: effective-id access"; exit 1; }
fi
rm -rf "$d"; echo PASS
