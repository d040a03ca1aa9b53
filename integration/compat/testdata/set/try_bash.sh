#!/bin/bash
set -eo pipefail
diff <(echo same) <(echo same) && echo 'process substitution'
coproc cat
echo coprocess >&"${COPROC[1]}"
read -r line <&"${COPROC[0]}"
echo "$line"
sleep 1000 &
kill $!
wait $! || echo "ended by $(($? - 128))"
mkfifo /tmp/fifo
echo 'through a fifo' >/tmp/fifo &
cat /tmp/fifo
wait $!
trap 'echo trapped' USR1
kill -USR1 $$
cat <<<'here string'
