#!/bin/bash
set -e
cd /work
echo '{"name": "x", "version": "1.0.0", "scripts": {"answer": "node -p 6*7"}}' >package.json
npm run -s answer
mkdir dep
echo '{"name": "dep", "version": "1.0.0", "main": "i.js"}' >dep/package.json
echo 'module.exports = "a dependency"' >dep/i.js
npm install --offline --no-audit --no-fund --silent ./dep
node -p 'require("dep")'
