#!/bin/sh
# A17: git dubious ownership. Git refuses a mounted checkout ("dubious ownership") because the uid
# inside differs from the owner, and shows odd errors when HOME is missing.
command -v git >/dev/null 2>&1 || { echo "SKIP: no git"; exit 77; }
d=$(mktemp -d) && cd "$d" || exit 1
{ git init -q r && cd r && git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m x; } || { echo "FAIL: new repository"; exit 1; }
[ -z "$(git status --porcelain)" ] || { echo "FAIL: status"; exit 1; }
if [ -n "$REPO" ]; then git -C "$REPO" status >/dev/null 2>"$d/e" || { echo "FAIL: $(head -1 "$d/e")"; exit 1; }; fi
cd /; rm -rf "$d"; echo PASS
