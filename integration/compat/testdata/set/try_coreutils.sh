#!/bin/bash
set -eo pipefail
cd /work
seq 100000 | sort -R | sort -n | sha256sum | cut -c1-16
printf 'b\na\nb\n' | sort | uniq -c | tr -s ' \n' ' '
echo
mkdir d && echo x >d/f && ln -s f d/l && tar -cf - d | tar -tf - | sort | tr '\n' ' '
echo
find d -type f | xargs -P 2 -n 1 basename
timeout 60 true && date -u -d @0 +%F
sed -E 's/(a)(b)/\2\1/' <<<ab
nproc
free -m | awk '/^Mem/ {print $2}'
df --output=size /work | tail -n 1 | tr -d ' '
