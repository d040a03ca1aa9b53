#!/bin/sh
# The rule's shell line, with docker replaced by sandglass and the image by host.
cd "$(dirname "$0")" || exit

sandglass run --rm --network none --read-only --memory 256m --cpus 0.5 --pids-limit 64 \
  --user 65534 --cap-drop ALL --security-opt no-new-privileges \
  -v "$PWD/task:/task:ro" host timeout 10 python /task/main.py
