#!/bin/bash
# The main job on real input: four snippets as a model writes them and the rule's
# own line, each in a fresh sandbox, and what they print and leave compared with
# what is right.
#
#   examples/demo.sh [SANDGLASS]     the binary, default bin/sandglass; sandglass-image lies beside it
set -euo pipefail
cd "$(dirname "$0")/.."

sandglass=$(realpath "${1:-bin/sandglass}")
expected=examples/snippets/expected
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
mkdir "$out"
failed=0

# A host may not let this user limit memory, CPU and processes by control group.
# Weaker means must then be allowed by name, and sandglass says so itself.
degraded=()
if ! "$sandglass" run -- true 2>"$scratch/why"; then
  if ! grep -q -- 'hint: .*--allow-degraded' "$scratch/why"; then
    cat "$scratch/why" >&2
    exit 1
  fi
  degraded=(--allow-degraded memory,cpu,pids)
  echo "NOTE: this user has no control group here, so the runs pass ${degraded[*]}:"
  echo "      memory is then watched, processes counted by rlimit, and the CPU rate is not limited."
fi

# The rule's own line names an image. It is built of Debian's packages or, where
# there is no network, of this host's own Python; in a store of the demo's own.
export XDG_DATA_HOME=$scratch/data
image() {
  printf '\n$ sandglass image'; printf ' %s' "$@"; echo
  "$sandglass" image "$@"
}
if ! image build python --name sandbox-image 2>"$scratch/why"; then
  grep -m 1 "^sandglass: error: " "$scratch/why" || true
  echo "NOTE: Debian's packages cannot be had here (no network, or no apt): the image is made of this host's own Python."
  image from-host --name sandbox-image python3 timeout || failed=1
fi

# show prints a run as it can be typed: STDIN or -, then the arguments.
show() {
  local word
  printf '\n$ sandglass run'
  for word in "${@:2}"; do
    case "$word" in
    *[!a-zA-Z0-9_./:=,@+-]*) printf " '%s'" "$word" ;; # none here has a quote
    *) printf ' %s' "$word" ;;
    esac
  done
  if [ "$1" = - ]; then echo; else echo " < $1"; fi
}

# job NAME STDIN ARGUMENT... runs one sandbox. What it prints must be
# expected/NAME.txt, byte for byte, and its exit code 0.
job() {
  local name=$1 stdin=$2 code=0
  shift 2
  show "$stdin" "${degraded[@]}" "$@"
  [ "$stdin" = - ] && stdin=/dev/null
  "$sandglass" run "${degraded[@]}" --result "$scratch/$name.json" "$@" <"$stdin" >"$scratch/$name.txt" || code=$?
  cat "$scratch/$name.txt"
  verdict "$name: exit code $code" test "$code" = 0
  verdict "$name: output is right" cmp "$scratch/$name.txt" "$expected/$name.txt"
  verdict "$name: result says exited" grep -q '"outcome":"exited"' "$scratch/$name.json"
}

verdict() {
  if "${@:2}"; then echo "ok    $1"; else echo "WRONG $1"; failed=1; fi
}

job report - -v "$PWD/examples/data:/data:ro" --out "$out" examples/snippets/report.py
verdict "report: report.md arrived and is right" cmp "$out/report.md" "$expected/report.md"
verdict "report: chart.svg arrived and is right" cmp "$out/chart.svg" "$expected/chart.svg"
verdict "report: nothing else arrived" test "$(ls "$out" | wc -l)" = 2

job rule - --rm --network none --read-only --memory 256m --cpus 0.5 --pids-limit 64 \
  --user 65534 --cap-drop ALL --security-opt no-new-privileges \
  -v "$PWD/examples/rule/task:/task:ro" sandbox-image timeout 10 python /task/main.py

job longest examples/data/trips.csv -i examples/snippets/longest.js

job wet_days - -v "$PWD/examples/data:/data:ro" examples/snippets/wet_days.sh

job histogram examples/data/trips.csv -i -v "$PWD/examples/snippets:/task:ro" -- \
  sh -c 'gcc -O2 -o /work/histogram /task/histogram.c && /work/histogram'

echo
if [ "$failed" != 0 ]; then
  echo "demo: something is WRONG, see above"
  exit 1
fi
echo "demo: 5 sandboxes, all results right"
