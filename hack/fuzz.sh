#!/bin/bash
# Fuzzes every parser that meets a program's content or a caller's input, one
# after the other, each for TIME. A crash stays as a file under testdata/fuzz of
# its package, where every later `go test` runs it.
#
#   hack/fuzz.sh TIME [REGEXP of target names]
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:?usage: hack/fuzz.sh TIME [REGEXP]}
which=${2:-.}
failed=()
while IFS=: read -r file name; do
  [[ $name =~ $which ]] || continue
  package=./$(dirname "$file")
  echo "=== $package $name, $time"
  go test "$package" -run '^$' -fuzz "^$name\$" -fuzztime "$time" | tail -n 3 || failed+=("$package $name")
done < <(git grep -oE '^func Fuzz[A-Za-z0-9]+' -- '*_test.go' | sed 's/:func /:/' | sort)
for f in "${failed[@]}"; do echo "failed: $f"; done
[ ${#failed[@]} = 0 ]
