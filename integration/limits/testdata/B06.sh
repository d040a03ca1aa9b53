#!/bin/sh
# B06: sleeping for ever; timeout as a verdict of its own. Only CPU time is limited, so a sleeping
# program is never stopped; or the timeout is reported as a plain exit (0, 124 or 137 without a
# word), or everything printed so far is thrown away.
echo "out so far"; echo "err so far" >&2
exec sleep 100000
