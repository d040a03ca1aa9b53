#!/usr/bin/env node
// The rule's JavaScript call: model code from the first argument, never in this process.
const { execFile } = require('child_process');

const modelCode = process.argv[2] ?? 'console.log([1, 2, 3].map((n) => n * n).join())';

execFile("sandglass", ["run", "--rm", "--network", "none", "host", "timeout", "10", "node", "-e", modelCode], { timeout: 15_000 }, (error, stdout, stderr) => {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  if (error?.killed) {
    console.error(`stopped by the caller: ${error.signal ?? error.code}`);
    process.exitCode = 1;
  } else {
    process.exitCode = error ? error.code : 0;
  }
});
