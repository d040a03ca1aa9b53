// A07: node spawnSync EPERM after success. Node's spawnSync reports EPERM although the child ran
// and exited 0 with its output captured, so build scripts that shell out (git rev-parse, tsc)
// throw.
const cp = require('child_process'), { Worker, isMainThread, parentPort } = require('worker_threads');
if (process.argv[2] === 'ipc') { process.send('pong'); process.disconnect(); }
else if (!isMainThread) { parentPort.postMessage(6 * 7); }
else {
  const s = cp.spawnSync(process.execPath, ['-e', 'process.stdout.write("x")']);
  if (s.error || s.status !== 0 || String(s.stdout) !== 'x') { console.log('FAIL: spawnSync', s.error && s.error.code, s.status); process.exit(1); }
  if (cp.execFileSync('/bin/sh', ['-c', 'echo hi']).toString() !== 'hi\n') { console.log('FAIL: execFileSync'); process.exit(1); }
  const kid = cp.fork(__filename, ['ipc']);
  kid.on('message', m => {
    if (m !== 'pong') { console.log('FAIL: ipc'); process.exit(1); }
    new Worker(__filename).on('message', v => { console.log(v === 42 ? 'PASS' : 'FAIL: worker'); process.exit(v === 42 ? 0 : 1); });
  });
  kid.on('error', e => { console.log('FAIL: fork', e.code); process.exit(1); });
}
