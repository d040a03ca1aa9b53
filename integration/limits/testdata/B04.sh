#!/bin/sh
# B04: background child after the main program ended. The main program ends at once but leaves a
# background child holding stdout: the call hangs until that child ends, or returns while the
# child goes on running (and writing) unsupervised.
s=${SECS:-300}
sh -c "sleep $s; echo late" b04-child &
setsid sh -c "trap '' HUP TERM INT; sleep $s; echo later" b04-child &
echo "main done"
exit 0
