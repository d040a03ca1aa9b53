#!/bin/bash
# The checkout at /repo is the caller's, and read-only.
set -e
cd /repo
git log --format=%s
git status --porcelain
git clone -q /repo /work/clone
cd /work/clone
git checkout -q -b topic
echo x >file
git add file
git -c user.name=a -c user.email=a@example.invalid commit -qm second
git log --format=%s
git gc -q
git fsck --no-progress --no-dangling && echo 'fsck: clean'
git diff --stat HEAD~1 | tail -n 1
