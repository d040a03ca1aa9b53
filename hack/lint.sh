#!/bin/bash
# Fails on any finding of gofmt, go mod tidy, go vet or staticcheck, for both architectures.
#
#   hack/lint.sh STATICCHECK
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0

unformatted=$(git ls-files --cached --others --exclude-standard '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  echo "gofmt: these files are not formatted:"
  echo "$unformatted"
  failed=1
fi
go mod tidy -diff || failed=1
for arch in amd64 arm64; do
  # Without cgo, so that one machine can look at both: the one file that needs
  # it is looked at below.
  export CGO_ENABLED=0 GOARCH=$arch
  go vet ./... || failed=1
  "$1" ./... || failed=1
done
unset CGO_ENABLED GOARCH
if pkg-config --exists libseccomp 2>/dev/null; then
  go vet -tags libseccomp ./cmd/seccompc || failed=1
  "$1" -tags libseccomp ./cmd/seccompc || failed=1
fi
[ "$failed" = 0 ] && echo "lint: nothing found"
exit "$failed"
