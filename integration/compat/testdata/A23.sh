#!/bin/sh
# A23: stdin never ends. No input was given, yet stdin is an open pipe (or the caller's own
# stdin): cat, rg without a path, gh, ssh and "read" wait for ever, or eat bytes meant for the
# caller.
[ -t 0 ] && { echo "FAIL: stdin is the caller's terminal"; exit 1; }
timeout 2 cat >/dev/null; rc=$?
[ "$rc" = 124 ] && { echo "FAIL: stdin never ends"; exit 1; }
[ "$rc" = 0 ] || { echo "FAIL: reading stdin gave status $rc"; exit 1; }
echo PASS
