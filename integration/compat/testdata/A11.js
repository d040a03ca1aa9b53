// A11: io_uring probe must fail softly. Libuv probes io_uring_setup at start; a filter whose
// action is "kill" ends node in 200 ms without a word.
const { spawnSync } = require('child_process'), fs = require('fs'), os = require('os'), path = require('path');
if (process.argv[2] !== 'go') {
  const r = spawnSync(process.execPath, [__filename, 'go'], { env: { ...process.env, UV_USE_IO_URING: '1' }, stdio: 'inherit' });
  if (r.signal) console.log('FAIL: node killed by ' + r.signal);
  process.exit(r.status === null ? 1 : r.status);
}
(async () => {
  const d = await fs.promises.mkdtemp(path.join(os.tmpdir(), 'a11-'));
  await Promise.all([...Array(50).keys()].map(i => fs.promises.writeFile(path.join(d, 'f' + i), 'v' + i)));
  const got = await Promise.all([...Array(50).keys()].map(i => fs.promises.readFile(path.join(d, 'f' + i), 'utf8')));
  await fs.promises.rm(d, { recursive: true });
  const ok = got.every((v, i) => v === 'v' + i); console.log('uv', process.versions.uv); console.log(ok ? 'PASS' : 'FAIL: content'); process.exit(ok ? 0 : 1);
})().catch(e => { console.log('FAIL:', e.code || e.message); process.exit(1); });
