#!/bin/bash
set -e
cd /work
echo 'const f = (x: number): string => `n=${x}`; console.log(f(42));' >a.ts
tsc --target es2020 a.ts
node a.js
echo 'const s: string = 1;' >b.ts
tsc b.ts || echo "exit $?"
