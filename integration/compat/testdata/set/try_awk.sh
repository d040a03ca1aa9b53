#!/bin/bash
set -e
seq 100 | awk '{s += $1} END {print s}'
gawk 'BEGIN { "echo piped" | getline x; print x; print strftime("%F", 0, 1) }'
gawk 'BEGIN { print "co-process" |& "cat"; close("cat", "to"); "cat" |& getline x; print x }'
