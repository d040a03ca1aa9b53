// Tests of sandglass.mjs against the real binary: SANDGLASS is its path,
// SANDGLASS_FLAGS what every session needs on this host.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { runInNewContext } from 'node:vm'

import * as sandglass from './sandglass.mjs'

const flags = (process.env.SANDGLASS_FLAGS ?? '').split(' ').filter(Boolean)
const session = (options) => sandglass.Session.start({ flags, ...options })
const forever = { command: ['sh', '-c', 'echo here; sleep 1000'], options: { timeout: '1h' } }

let dir, box
before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'sandglass-test-'))
  chmodSync(dir, 0o755)
  box = await session({ maxRunning: 4, timeout: '20s', env: { A: 'session' } })
})
after(async () => {
  await box?.close()
  rmSync(dir, { recursive: true })
})

// pid of the session, by what it was started with.
function pidOf(mark) {
  const list = execFileSync('sh', ['-c', `grep -lzxF -- '${mark}' /proc/[0-9]*/cmdline 2>/dev/null || true`]).toString().trim().split('\n')
  const pids = list.map((path) => Number(path.split('/')[2])).filter((pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[1] === String(process.pid))
  assert.equal(pids.length, 1, list.join())
  return pids[0]
}

// A run that has begun.
async function begun(box) {
  const run = await box.submit({ ...forever, stream: true })
  const pieces = run[Symbol.asyncIterator]()
  assert.equal((await pieces.next()).value.text, 'here\n')
  return run
}

// Runs where the place of another is free only when that is gone.
async function next(box) {
  for (;;) {
    try {
      return (await box.run({ command: ['echo', 'next'] })).stdout
    } catch (e) {
      if (!(e instanceof sandglass.Busy)) throw e
    }
  }
}

test('code, its surroundings and its result', async () => {
  assert.ok(box.languages.includes('node'))
  const r = await box.run({
    code: 'process.stdout.write(JSON.stringify([process.argv.slice(2), require("fs").readFileSync(0).toString("hex"), process.env.A, process.env.B])); process.exitCode = 3',
    lang: 'node', args: ['a', 'b c'], stdin: Buffer.from([0, 255]), env: { B: 'é\n' }, options: { timeout: 15, memory: '200m' },
  })
  assert.deepEqual([r.outcome, r.exitCode, r.signal, r.error, r.ok], ['exited', 3, undefined, undefined, false])
  assert.deepEqual(JSON.parse(r.stdout), [['a', 'b c'], '00ff', 'session', 'é\n'])
  assert.deepEqual([r.raw.schema, r.raw.limits.timeout.value, r.raw.limits.memory.value], [1, 15000, 200 << 20])
  assert.throws(() => r.check(), (e) => e instanceof sandglass.RunError && e.result === r && e.message === 'the program ended as exited, exit code 3')
  assert.equal(r.warm, false)
  const other = await box.run({ command: ['sh', '-c', "printf 'a\\nno \\033[31m\\n' >&2; exit 1"] })
  assert.throws(() => other.check(), { message: 'the program ended as exited, exit code 1: no ?[31m' })
})

test('other outcomes', async () => {
  let r = await box.run({ command: ['sh', '-c', "echo begun; printf '\\377' >&2; sleep 100"], options: { timeout: 3 } })
  assert.deepEqual([r.outcome, r.exitCode, r.stdout, r.stderrBytes], ['timeout', 124, 'begun\n', Buffer.from([255])])
  r = await box.run({ command: ['sh', '-c', 'yes | head -c 5000'], options: { outputLimit: 1024 } })
  assert.deepEqual([r.stdoutBytes.length, r.stdoutTruncated, r.stderrTruncated], [1024, true, false])
})

test('files in and out', async () => {
  writeFileSync(join(dir, 'source'), 'from the host\n')
  let r = await box.run({
    command: ['sh', '-c', "cat a b/c d; ./x; printf '\\0' >/out/bytes; echo text >/out/text; ln -s /etc /out/link; : >/out/empty"],
    files: [{ path: 'a', data: 'text\n' }, { path: 'b/c', data: Buffer.from('bytes\n') }, { path: 'd', source: join(dir, 'source') },
      { path: 'x', data: '#!/bin/sh\necho run\n', executable: true }],
    artifactsInline: '1m',
  })
  assert.deepEqual([r.stdout, r.stderr], ['text\nbytes\nfrom the host\nrun\n', ''])
  assert.deepEqual(Object.fromEntries(r.artifacts.map((a) => [a.path, a.data?.toString()])), { bytes: '\0', text: 'text\n', link: undefined, empty: '' })
  r = await box.run({ command: ['sh', '-c', 'cat in >/out/copy'], files: { in: new Uint8Array([120]) }, artifactsDir: join(dir, 'out') })
  assert.equal(readFileSync(join(dir, 'out', 'copy'), 'utf8'), 'x')
})

test('streaming', async () => {
  const pieces = []
  const r = await box.run({ command: ['sh', '-c', 'echo one; echo two >&2; head -c 200000 /dev/zero'], onOutput: async (p) => { pieces.push(p) } })
  const all = (stream) => Buffer.concat(pieces.filter((p) => p.stream === stream).map((p) => p.data))
  assert.ok(all('stdout').equals(Buffer.concat([Buffer.from('one\n'), Buffer.alloc(200000)])))
  assert.equal(all('stderr').toString(), 'two\n')
  assert.deepEqual([r.stdout, r.raw.stdout.bytes], ['', 200004])
})

test('many at once', async () => {
  const all = await Promise.all([...Array(12).keys()].map((n) => box.run({ command: ['echo', String(n)] })))
  assert.deepEqual(all.map((r) => r.stdout), [...Array(12).keys()].map((n) => `${n}\n`))
})

test('refusals and wrong requests', async () => {
  await assert.rejects(box.run({ command: ['true'], options: { timeout: 'soon' } }),
    (e) => e instanceof sandglass.Refused && e.message.startsWith('timeout: ') && e.hints.length > 0 && e.exitCode === 125)
  for (const wrong of [{ command: 'echo hi' }, { command: ['a'], code: 'x' }, { command: ['a'], options: { memory: {} } }, { command: ['\ud800'] },
    { command: ['a'], files: [{ path: 'x' }] }, { command: ['cat'], stdin: 'x'.repeat(17 << 20) }]) {
    await assert.rejects(box.run(wrong), sandglass.RequestError)
  }
  assert.equal((await box.run({ command: ['echo', 'on'] })).stdout, 'on\n')
})

test('wrong fields are named, in the words of this library, and nothing is run', async () => {
  const yes = { command: ['true'] }
  for (const [wrong, text, hint] of [
    [undefined, 'what run() takes is of type undefined'],
    [{ code: Buffer.from('1'), lang: 'sh' }, 'code is of class Buffer, and must be a string'],
    [{ command: [1] }, 'command[0] is of type number'],
    [{ ...yes, args: 'x' }, 'args is of type string, and must be an array of strings'],
    [{ ...yes, stdin: 5 }, 'stdin is of type number'],
    [{ ...yes, env: ['A=b'] }, 'env is an array'],
    [{ ...yes, env: { A: 1 } }, 'env["A"] is of type number'],
    [{ ...yes, files: ['x'] }, 'files[0] is of type string'],
    [{ ...yes, files: { x: 1 } }, 'files["x"] is of type number'],
    [{ ...yes, files: [{ path: 'x', data: 'y', exec: true }] }, 'unknown field exec of file x'],
    [{ ...yes, artifactsInline: [] }, 'artifactsInline is an array'],
    [{ ...yes, options: 'x' }, 'options is of type string'],
    [{ ...yes, options: new Map([['memory', '7m']]) }, 'options is of class Map, and must be a plain object'],
    [{ ...yes, options: new (class Limits { memory = '7m' })() }, 'options is of class Limits, and must be a plain object'],
    [{ ...yes, options: Object.create({ memory: '7m' }) }, 'options is of class Object, and must be a plain object'],
    [new Map([['command', ['true']]]), 'what run() takes is of class Map'],
    [{ ...yes, memory: new Map() }, 'option memory'],
    [{ ...yes, env: new Map([['A', 'b']]) }, 'env is of class Map, and must be a plain object with a string in each field'],
    [{ ...yes, env: new Date() }, 'env is of class Date'],
    [{ ...yes, files: new Map([['a', 'b']]) }, 'files is of class Map'],
    [{ ...yes, files: new Set(['a']) }, 'files is of class Set'],
    [{ ...yes, files: [new Map([['path', 'a'], ['data', 'b']])] }, 'files[0] is of class Map, and must be a plain object'],
    [{ ...yes, args: new Set(['a']) }, 'args is of class Set, and must be an array of strings'],
    [{ ...yes, files: [{ path: 'x', data: 'y', executable: 'yes' }] }, 'files[0].executable is of type string, and must be true or false'],
    [{ ...yes, force: true }, 'force is for artifactsDir'],
    [{ ...yes, force: 1, artifactsDir: 'x' }, 'force is of type number, and must be true or false'],
    [{ ...yes, timeout: NaN }, 'option timeout is NaN, and must be a string, number, boolean or array of these'],
    [{ ...yes, options: { memory: {} } }, 'option memory'],
    [{ ...yes, timeout: 1, options: { timeout: 2 } }, 'timeout is there twice'],
    [{ ...yes, stream: true }, 'stream is for submit()'],
    [{ ...yes, onOutput: 1 }, 'onOutput is of type number'],
    [{}, 'a run has one of code (with lang), command and file'],
    [{ comand: ['true'] }, 'unknown field comand', 'did you mean command?'],
    [{ code: '1', language: 'sh' }, 'unknown field language', 'did you mean lang?'],
    [{ ...yes, timout: 1 }, 'unknown field timout', 'did you mean timeout?'],
    [{ ...yes, options: { outputLimits: 1 } }, 'unknown field outputLimits', 'did you mean outputLimit?'],
    [{ ...yes, allowDegraded: 'memory' }, 'allowDegraded is for the whole session, and not for one run of it', 'Session.start({ allowDegraded })'],
  ]) {
    await assert.rejects(box.run(wrong), (e) => {
      assert.deepEqual([e.name, e.message.startsWith(text)], ['RequestError', true], `${e}, want ${text}`)
      if (hint) assert.equal(e.hints[0], hint)
      return true
    })
  }
  for (const [wrong, text] of [[{ timout: 1 }, 'unknown field timout'], [{ env: ['A=b'] }, 'env is an array'], [{ memory: {} }, 'option memory'],
    [{ options: new Map([['memory', '7m']]) }, 'options is of class Map'],
    [{ env: new Map([['A', 'b']]) }, 'env is of class Map'], [{ flags: new Set(['--pty']) }, 'flags is of class Set'],
    [{ binary: '' }, 'binary is empty, and must be a path'], [{ timeout: Infinity }, 'option timeout is Infinity']]) {
    await assert.rejects(session(wrong), (e) => e instanceof sandglass.RequestError && e.message.startsWith(text), text)
  }
  await assert.rejects(box.run({ ...yes, outputLimit: '100m' }), (e) => {
    assert.deepEqual([e.name, e.message, e.hints], ['Refused', 'outputLimit: 100m is too much to collect: at most 16m',
      ['run({ onOutput }), or submit({ stream: true })', "outputLimit: '16m'"]])
    return true
  })
  await assert.rejects(sandglass.Session.start(new Map([['memory', '7m']])), /what start\(\) takes is of class Map, and must be a plain object/)
  await assert.rejects(box.submit({ ...yes, stream: 'no' }), (e) => e instanceof sandglass.RequestError && e.message.startsWith('stream is of type string'))
  const run = await box.submit(yes)
  assert.throws(() => run[Symbol.asyncIterator](), /stream: true/)
})

// Made absolute, an empty path is the caller's directory, where the program's files would be written.
test('an empty path is refused', async (t) => {
  const [was, here] = [process.cwd(), mkdtempSync(join(dir, 'here'))]
  process.chdir(here)
  t.after(() => process.chdir(was))
  const leaves = { command: ['sh', '-c', 'echo planted >/out/planted'] }
  for (const [name, request] of [['artifactsDir', { ...leaves, artifactsDir: '' }], ['file', { file: '' }],
    ['files[0].source', { ...leaves, files: [{ path: 'x', source: '' }] }]]) {
    await assert.rejects(box.run(request), (e) => e instanceof sandglass.RequestError && e.message === `${name} is empty, and must be a path`, name)
  }
  for (const name of ['volume', 'image', 'workdir', 'venv', 'envFile', 'seccomp', 'mount']) {
    await assert.rejects(box.run({ command: ['true'], [name]: '' }), (e) => e instanceof sandglass.Refused && e.message.startsWith(name === 'seccomp' ? 'seccomp: ' : `${name}: `), name)
  }
  for (const volume of [':/d', './:', ':']) await assert.rejects(box.run({ command: ['true'], volume }), /^Refused: volume: /)
  assert.deepEqual(readdirSync(here), [])
})

test('false is said', async () => {
  for (const memory of [true, false]) {
    for (const what of [() => session({ memory }), () => box.run({ command: ['true'], memory })]) {
      await assert.rejects(what(), (e) => e instanceof sandglass.Refused && e.message === `memory: "${memory}" is not a size`)
    }
  }
  const other = await session({ pty: true, explainDenials: false })
  const has = async (pty) => (await other.run({ command: ['test', '-e', '/dev/pts/ptmx'], pty })).exitCode === 0
  assert.deepEqual([await has(), await has(false)], [true, false])
  await other.close()
})

test('objects of another realm, and without a prototype, are plain', async () => {
  for (const options of [runInNewContext("({ memory: '64m' })"), Object.assign(Object.create(null), { memory: '64m' })]) {
    assert.equal((await box.run({ command: ['true'], options })).raw.limits.memory.value, 64 << 20)
  }
  await assert.rejects(box.run({ command: ['true'], options: runInNewContext("new Map([['memory', '64m']])") }), /options is of class Map/)
})

// Every hint of a session's, as integration/clients finds them in its source.
test('hints are in the words of this library', async () => {
  const rows = JSON.parse(readFileSync(new URL('../hints.json', import.meta.url), 'utf8'))
  const path = fake(`echo 'sandglass: error: no' >&2; cat "$0.hints" >&2; exit 125\n`)
  writeFileSync(path + '.hints', rows.map((r) => `hint: ${r.hint}\n`).join(''))
  await assert.rejects(session({ binary: path }), (e) => {
    assert.ok(e instanceof sandglass.Refused)
    assert.deepEqual(e.hints, rows.map((r) => r.node))
    return true
  })
  for (const { node } of rows) if (/^[a-zA-Z]+: /.test(node)) new Function(`run({ ${node}\n})`) // can be pasted
})

// The hints of a refusal in a session.
async function hinted(t, hints) {
  const path = fake(`echo '${hello}'; read x; cat "$0.reply"; exec cat >/dev/null\n`)
  writeFileSync(path + '.reply', JSON.stringify({ type: 'error', id: '1', code: 'refused', error: 'no', hints }) + '\n')
  const box = await session({ binary: path })
  t.after(() => box.close())
  const e = await box.run({ command: ['true'] }).then(() => assert.fail('a result'), (e) => e)
  assert.ok(e instanceof sandglass.Refused, e.stack)
  return e.hints
}

// An argument that a model chose is never taken for a part of our own line, and no hint costs the refusal that it came with.
test('hints that repeat a request', async (t) => {
  const rows = [
    ["sandglass run --lang go x.go '<'   # says what language it is", "lang: 'go', file: 'x.go', args: ['<']   // says what language it is"],
    ["sandglass run --image python /data/tool '<'   # a copy", "image: 'python', file: '/data/tool', args: ['<']   // a copy"],
    ["sandglass run /data/tool '<' x   # a copy", "file: '/data/tool', args: ['<', 'x']   // a copy"],
    ["sandglass run -v /srv:/task -- go run /task/x.go '<b>'", "volume: '/srv:/task', command: ['go', 'run', '/task/x.go', '<b>']"],
    ["sandglass run --lang go x.go '$PWD/x' '$(id -u)'", "lang: 'go', file: 'x.go', args: ['$PWD/x', '$(id -u)']"],
    ["sandglass run --lang go x.go 'a   # b'   # c", "lang: 'go', file: 'x.go', args: ['a   # b']   // c"],
    ["sandglass run --lang go x.go 'a   # b'"],
    ['sandglass run x: -v b', "image: 'x:', command: ['-v', 'b']"],
    ["sandglass run --lang go x.go 'a sandglass run FILE b'", "lang: 'go', file: 'x.go', args: ['a sandglass run FILE b']"],
    ["ls -ld -- '/a sandglass run FILE; sandglass run --cgroup-parent x script.py'"],
    ['sandglass run -- COMMAND <'],
    ['sandglass run --constructor'],
    ['--constructor x', "constructor: 'x'"],
    ['--__proto__ x', "__proto__: 'x'"],
    ["sandglass run --lang 'go"],
    ['sandglass run "'],
    ['sandglass run a\0<'],
    ['-v'],
    [''],
  ]
  assert.deepEqual(await hinted(t, rows.map(([hint]) => hint)), rows.map(([hint, said]) => said ?? hint))
  const parts = ["'", '"', '\\', '<', ' ', '-- ', '-e ', '--lang ', '$PWD', '#', '   # ', '=', '.py', 'x: ', '\n']
  let seed = 1
  const part = () => parts[(seed = (seed * 48271) % 2147483647) % parts.length]
  const lines = [...Array(2000)].flatMap(() => {
    const line = [...Array(12)].map(part).join('')
    return [line, 'sandglass run ' + line, 'why: --' + line]
  })
  const said = await hinted(t, lines)
  assert.deepEqual([said.length, said.filter((hint) => typeof hint !== 'string')], [lines.length, []])
})

// They cost what their length is, and not its square, which is ten minutes and more.
test('long hints', { timeout: 60_000 }, async (t) => {
  const hints = ['sandglass run x' + ' '.repeat(400_000) + 'y', ' '.repeat(400_000), '   # '.repeat(100_000), 'sandglass run ' + 'a: '.repeat(100_000),
    'sandglass run '.repeat(30_000), "'".repeat(399_999), 'sandglass run -- ' + ' <a'.repeat(100_000)]
  assert.equal((await hinted(t, hints)).length, hints.length)
})

test('hints of results and refusals', async () => {
  const hinted = async (error, hints, request) => {
    const r = await box.run(request)
    assert.deepEqual([r.error, r.hints], [error, hints])
    return r
  }
  for (const [size, hint] of [[3000000, "artifactsInline: '4m'"], [9000000, "artifactsDir: 'DIR'   // the result has room for 8m"]]) {
    await hinted('artifacts: 1 entry was not collected: larger than the limit of one file, 1048576 bytes', [hint],
      { command: ['sh', '-c', `head -c ${size} /dev/zero >/out/x`], artifactsInline: '1m' })
  }
  const artifactsDir = mkdtempSync(join(dir, 'there'))
  writeFileSync(join(artifactsDir, 'x'), '')
  const r = await hinted(`artifactsDir ${artifactsDir}: the destination already has 1 artifact: "x"`, ['force: true   // to overwrite them'],
    { command: ['sh', '-c', 'echo y >/out/x'], artifactsDir })
  assert.equal(r.artifacts[0].skipped, 'exists (use force: true)')
  assert.ok((await box.run({ command: ['sh', '-c', 'echo y >/out/x'], artifactsDir, force: true })).ok)
  const yes = { command: ['true'] }
  for (const [request, message, ...hints] of [
    [{ ...yes, artifactsInline: '1g' }, 'artifactsInline: 1g is too much to hold in the result: at most 8m', "artifactsInline: '8m'"],
    [{ ...yes, artifactsInline: '' }, 'artifactsInline: "" is not a size', 'write bytes with a unit: 64k, 256m, 1g'],
    [{ ...yes, volume: '/etc:/d' }, 'volume: host path "/etc" is refused: it holds the host\'s accounts, keys and settings',
      "if it must be this path: Session.start({ allowMount: '/etc' }), or run({ ..., allowMount: '/etc' })",
      "share only the files the task needs: volume: process.cwd() + '/task:/task:ro'"],
    [{ ...yes, files: Object.fromEntries([...Array(1001).keys()].map((n) => [`f${n}`, ''])) }, 'files: there are more than 1000',
      "volume: '/srv/data:/data:ro'   // shows a whole directory"],
    [{ code: '', lang: 'node' }, 'nothing to run', "file: 'script.py'", "code: 'print(1)', lang: 'python'", "image: 'host', command: ['COMMAND']"],
    [{ ...yes, netRate: '1m' }, 'netRate means nothing without allowHost', "allowHost: 'example.org:443'"],
    [{ ...yes, out: 'x' }, 'out is refused: it is artifactsDir or artifactsInline of a run', 'sandglass session --help'],
    [{ command: ['--out: x'] }, 'command not found: "--out: x"', "command: ['ls', '/usr/bin']   // the commands that are inside"],
  ]) {
    await assert.rejects(box.run(request), (e) => {
      assert.deepEqual([e.name, e.message, e.hints], ['Refused', message, hints])
      return true
    })
  }
})

test('limits among the fields hold, and what is undefined or null has its default', async () => {
  const limits = async (box, fields) => {
    const { timeout, memory } = (await box.run({ command: ['true'], ...fields })).raw.limits
    return [timeout.value, memory.value]
  }
  assert.deepEqual(await limits(box, { timeout: 3, memory: '64m' }), [3000, 64 << 20])
  assert.deepEqual(await limits(box, { options: { timeout: 3 }, memory: '64m' }), [3000, 64 << 20])
  assert.deepEqual(await limits(box, { timeout: undefined, memory: null, options: undefined }), [20000, 256 << 20])
  assert.deepEqual(await limits(box, { options: { timeout: undefined, memory: null } }), [20000, 256 << 20])
  const other = await session({ memory: undefined, timeout: null, options: { memory: '65m' } })
  assert.deepEqual(await limits(other, {}), [10000, 65 << 20])
  await other.close()
})

test('busy, cancel and abort', async () => {
  const box = await session({ maxRunning: 1, maxQueued: 1 })
  const run = await begun(box)
  const waits = await box.submit({ command: ['true'] })
  await assert.rejects(box.run({ command: ['true'] }), (e) => e instanceof sandglass.Busy && e.message === 'the session is busy: 1 run and 1 wait' && e.hints.includes('try again when a run has ended'))
  waits.cancel()
  await assert.rejects(waits.result(), (e) => e instanceof sandglass.Canceled && e.result === undefined)
  run.cancel()
  await assert.rejects(run.result(), (e) => e instanceof sandglass.Canceled && e.result.outcome === 'canceled')
  const stop = new AbortController()
  const early = new AbortController()
  const aborted = box.run({ ...forever, signal: early.signal })
  early.abort(new RangeError('at once'))
  await assert.rejects(aborted, RangeError)
  await assert.rejects(box.run({ ...forever, signal: stop.signal, onOutput: () => stop.abort(new RangeError('enough')) }), RangeError)
  await assert.rejects(box.run({ command: ['true'], signal: stop.signal }), RangeError)
  await assert.rejects(box.run({ ...forever, onOutput: () => { throw new RangeError('enough') } }), RangeError)
  assert.equal(await next(box), 'next\n')
  for await (const piece of await box.submit({ ...forever, stream: true })) {
    assert.equal(piece.text, 'here\n')
    break // and nobody takes its output: it is cancelled
  }
  assert.equal(await next(box), 'next\n')
  await box.close()
})

test('one program', async () => {
  assert.equal((await sandglass.run({ code: 'echo $0', lang: 'sh', flags })).check().exitCode, 0)
  assert.equal((await sandglass.run({ command: ['true'], flags, allowDegraded: 'cpu' })).exitCode, 0)
  await assert.rejects(sandglass.run({ command: ['true'], flags: ['--privileged'] }), (e) => e instanceof sandglass.Refused && e.message.startsWith('privileged is refused: '))
})

test('close cancels', async () => {
  const box = await session()
  const run = await begun(box)
  await box.close()
  await assert.rejects(run.result(), sandglass.Canceled)
  await assert.rejects(box.run({ command: ['true'] }), sandglass.SessionClosed)
  await box.close()
})

test('a session that is killed', async () => {
  const box = await session({ maxRunning: 1, env: { MARK: 'killed' } })
  const runs = [await begun(box), await box.submit({ command: ['true'] })]
  process.kill(pidOf('--env=MARK=killed'), 'SIGKILL')
  for (const run of runs) await assert.rejects(run.result(), (e) => e instanceof sandglass.SessionClosed && e.message.includes('SIGKILL'))
  await assert.rejects(box.run({ command: ['true'] }), sandglass.SessionClosed)
  await box.close()
})

test('output that nobody takes', async () => {
  const box = await session({ maxRunning: 2, timeout: '2m' })
  const run = await box.submit({ command: ['sh', '-c', 'yes | head -c 12000000'], stream: true, options: { outputLimit: '16m' } })
  await filled(run)
  await new Promise((later) => setTimeout(later, 2000))
  assert.ok(!run.done) // without the bound it would all be here, and the run over
  let length = 0
  for await (const piece of run) length += piece.data.length
  assert.equal(length, 12000000)
  const left = await box.submit({ command: ['sh', '-c', 'yes | head -c 12000000'], stream: true, options: { outputLimit: '16m' } })
  await filled(left)
  await box.close()
})

// Whether as much waits as may: the next piece may be too large for the rest.
async function filled(run) {
  const full = ({ full, window, bytes, pieces } = run.waiting) => full || (window && (bytes > (8 << 20) - (64 << 10) || pieces >= 1024))
  while (!full()) await new Promise((later) => setTimeout(later, 10))
}

// A run whose output fills all there is, of which one piece was taken.
async function flooded(box) {
  const run = await box.submit({ command: ['sh', '-c', 'exec yes abc'], stream: true, outputLimit: '10g', timeout: '1h' })
  const pieces = run[Symbol.asyncIterator]()
  await pieces.next()
  await filled(run)
  return [run, pieces]
}

// Whether others are answered: within a minute, or not at all.
async function answers(box, run = box.run({ command: ['echo', 'hi'] }), said = 'hi\n') {
  let timer
  const late = new Promise((_, no) => { timer = setTimeout(() => no(new Error('no answer')), 60_000) })
  assert.equal((await Promise.race([run, late])).stdout, said)
  clearTimeout(timer)
}

// The binary as one that knows no windows.
function old(name) {
  const path = join(dir, name)
  writeFileSync(path, `#!/bin/sh\n${process.env.SANDGLASS} "$@" | { read -r hello; echo "$hello" | sed 's/,"window"//'; exec cat; }\n`, { mode: 0o755 })
  return path
}

test('a stream that nobody reads holds up its own program alone', async (t) => {
  const box = await session({ maxRunning: 2 })
  t.after(() => { sandglass.Run.patience = 10_000; return box.close() })
  sandglass.Run.patience = 1 // for a session that knows no windows
  const [run, pieces] = await flooded(box)
  for (let n = 0; n < 3; n++) await answers(box)
  for (let length = 0; length < 20_000_000;) { // more than the window: room comes back
    const { value, done } = await pieces.next()
    assert.ok(!done)
    length += value.data.length
  }
  run.cancel()
  await assert.rejects(run.result(), (e) => e instanceof sandglass.Canceled && e.message === 'the run was cancelled')
  // What is dropped gives its room back too.
  const left = await box.submit({ command: ['sh', '-c', 'yes | head -c 12000000'], stream: true, outputLimit: '16m', timeout: '1h' })
  await filled(left)
  assert.equal((await left.result()).raw.stdout.kept, 12_000_000)
})

test('a stream that is left, or that nobody reads, holds up nobody for long where there are no windows', async (t) => {
  const box = await session({ binary: old('old'), maxRunning: 2 })
  t.after(() => { sandglass.Run.patience = 10_000; return box.close() })
  sandglass.Run.patience = Infinity
  for (const way of ['cancel', 'cancel by another', 'break']) {
    const [run, pieces] = await flooded(box)
    if (way === 'cancel by another') {
      const other = box.run({ command: ['echo', 'hi'] })
      setTimeout(() => run.cancel(), 100)
      await answers(box, other)
    } else {
      if (way === 'cancel') run.cancel()
      else await pieces.return()
      await answers(box)
    }
    if (way === 'cancel') assert.ok((await pieces.next()).value.data.length > 0) // what waited is still there
    await assert.rejects(run.result(), sandglass.Canceled)
  }
  sandglass.Run.patience = 500
  const [run, pieces] = await flooded(box)
  await new Promise((later) => setTimeout(later, 2000))
  assert.ok(run.waiting.full) // alone it may wait
  await answers(box)
  const nobody = (e) => e instanceof sandglass.Canceled && e.message.startsWith('nobody took')
  await assert.rejects(async () => { while (!(await pieces.next()).done); }, nobody)
  await assert.rejects(run.result(), nobody)
})

test('an idle session keeps no program from ending, and no descriptor for others', async () => {
  const program = `import { Session } from ${JSON.stringify(new URL('./sandglass.mjs', import.meta.url).href)}
const box = await Session.start({ flags: ${JSON.stringify(flags)} })
process.stdout.write((await box.run({ command: ['echo', 'on'] })).stdout)`
  assert.equal(execFileSync(process.execPath, ['--input-type=module', '-e', program]).toString(), 'on\n')
  const text = execFileSync('sh', ['-c', 'ls -l /proc/self/fd']).toString()
  assert.equal(text.split('\n').filter((l) => l.includes('socket:')).length <= 3, true, text)
})

test('a session that is forgotten is closed, and one that is left open ends with the process', async (t) => {
  // It opens the FIFO for both ways, which waits for nobody: this test may be over before it
  // has ended. What it says is kept by the descriptor here.
  const path = fake(`exec 3<>"$0.code"; ${process.env.SANDGLASS} "$@" 3>&-; echo $? >&3\n`)
  execFileSync('mkfifo', [path + '.code'])
  const codes = await open(path + '.code', 'r+')
  t.after(async () => {
    await codes.write('over\n') // or a read that waits would keep it open
    await codes.close()
  })
  const said = async (codes) => {
    const { bytesRead, buffer } = await codes.read({ buffer: Buffer.alloc(16) })
    return buffer.toString('utf8', 0, bytesRead)
  }
  const begin = `import { open } from 'node:fs/promises'
import { Session } from ${JSON.stringify(new URL('./sandglass.mjs', import.meta.url).href)}
const start = () => Session.start({ binary: ${JSON.stringify(path)}, flags: ${JSON.stringify(flags)} })
const run = async (command, more) => (await start()).submit({ command, ...more })
const looks = setInterval(gc, 10)
`
  const node = (program) => execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', begin + program], { timeout: 60_000 }).toString()
  // Not while somebody has a run of it.
  assert.equal(node(`async function use() {
  const hi = await run(['sh', '-c', 'sleep 0.3; echo hi'])
  await new Promise((later) => setTimeout(later, 100))
  process.stdout.write((await hi.result()).stdout)
}
await use()
process.stdout.write(await (${said})(await open(${JSON.stringify(path)} + '.code')))
clearInterval(looks)`), 'hi\n0\n')
  // One that nobody has or waits for holds nothing: it is cancelled.
  assert.equal(node(`await run(['sleep', '1000'], { timeout: '1h' })
process.stdout.write(await (${said})(await open(${JSON.stringify(path)} + '.code')))
clearInterval(looks)`), '0\n')
  // One that somebody waits for, in whatever way, does.
  assert.equal(node(`const echo = { command: ['sh', '-c', 'sleep 0.3; echo hi'] }
const text = async (pieces) => { let all = ''; for await (const { text } of pieces) all += text; return all }
const got = [start().then((box) => box.run(echo)), run(echo.command).then((run) => run.result()), run(echo.command, { stream: true }).then(text)]
const [one, two, three] = await Promise.all(got)
process.stdout.write(one.stdout + two.stdout + three)
const codes = await open(${JSON.stringify(path)} + '.code')
for (let all = ''; all.length < 6;) all += await (${said})(codes)
clearInterval(looks)`), 'hi\nhi\nhi\n')
  const ended = said(codes)
  assert.equal(node(`for await (const piece of await run(['sh', '-c', 'echo here; sleep 1000'], { stream: true, timeout: '1h' })) {
  process.stdout.write(piece.text, () => process.exit())
}`), 'here\n')
  assert.equal(await ended, '141\n')
})

const hello = '{"type":"hello","protocol":1,"version":"x","limits":{"line_bytes":1000,"collect_bytes":10,"inline_bytes":10},"features":[],"languages":[]}'

// A program in place of sandglass.
function fake(script) {
  const path = join(mkdtempSync(join(dir, 'fake')), 'sandglass')
  writeFileSync(path, '#!/bin/sh\n' + script, { mode: 0o755 })
  return path
}

// A window is as much as waits where there is none, and the ends of streams come beyond it.
test('a window that is full cancels nothing', async (t) => {
  const result = '{"outcome":"exited","exit_code":0,"stdout":{"text":""},"stderr":{"text":""},"artifacts":[]}'
  const box = await session({ binary: fake(String.raw`echo '${hello.replace('},"features":[]', ',"window_bytes":1073741824,"window_pieces":1024},"features":["window"]')}'
piece=$(head -c 65536 /dev/zero | tr '\0' a)
output() { echo "{\"type\":\"output\",\"id\":\"1\",\"stream\":\"stdout\",\"text\":\"$1\"}"; }
result() { echo "{\"type\":\"result\",\"id\":\"$1\",\"result\":$(echo '${result}')}"; }
read x; i=0; while [ $i -lt 128 ]; do output $piece; i=$((i+1)); done
read x; output xy; output z; result 2; result 1; exec cat >/dev/null`) })
  t.after(() => { sandglass.Run.patience = 10_000; return box.close() })
  sandglass.Run.patience = 1
  const run = await box.submit({ command: ['true'], stream: true })
  await answers(box, box.run({ command: ['true'] }), '')
  let length = 0
  for await (const piece of run) length += piece.data.length
  assert.equal(length, (8 << 20) + 3)
})

test('a session that says no hello removes itself what it had begun to make', async () => {
  const path = fake(`trap 'echo down >"$0.gone"; exit' TERM
echo up >"$0.up"
cat
while kill -0 "$PPID"; do sleep 1; done`) // ends by a signal, and after the end of its requests
  execFileSync('mkfifo', [path + '.up'])
  const real = globalThis.setTimeout
  let late
  globalThis.setTimeout = (f, ms) => (ms === 60_000 ? (late = f) : real(f, ms))
  const starting = session({ binary: path })
  globalThis.setTimeout = real
  const up = readFile(path + '.up', 'utf8').then(late)
  await assert.rejects(starting, (e) => e instanceof sandglass.ProtocolError && e.message.endsWith('says no hello'))
  await up
  assert.equal(readFileSync(path + '.gone', 'utf8'), 'down\n')
})

test('what is no session, or a broken one', async () => {
  for (const [script, kind, text] of [
    ['exit 3', sandglass.ProtocolError, 'ended with 3'],
    ['echo nonsense; exec cat', sandglass.ProtocolError, 'cannot be read'],
    ['echo \'{"type":"hello","protocol":2}\'; exec cat', sandglass.ProtocolError, 'protocol 2'],
    ["echo 'sandglass: error: no, here' >&2; echo 'hint: try' >&2; exit 125", sandglass.Refused, 'no, here'],
    ["yes | head -c 3000000 | tr -d '\\n'; exec cat", sandglass.ProtocolError, 'longer than'],
  ]) {
    await assert.rejects(session({ binary: fake(script) }), (e) => e instanceof kind && e.message.includes(text), script)
  }
  await assert.rejects(session({ binary: '/nonexistent/sandglass' }), sandglass.NotInstalled)
  for (const fields of [{ binary: 'a\0b' }, { flags: ['a\0b'] }, { memory: 'a\0b' }, { env: { A: 'a\0b' } }, { allowHost: ['a\0b'] }]) {
    await assert.rejects(session(fields), (e) => e instanceof sandglass.RequestError && /^an argument of sandglass session has a NUL character: ".*a\\u0000b"$/.test(e.message))
  }
  for (const [script, kind, text] of [
    ['read x; printf \'{"type":"resu\'', sandglass.SessionClosed, 'in the middle of a reply'],
    ['read x; echo \'{"type":"error","code":"too_large","error":"x"}\'; exec cat', sandglass.ProtocolError, 'about no run'],
    ["read x; yes 1234567 | head -c 3000000 >&2; echo 'sandglass: error: gone' >&2; exit 9", sandglass.SessionClosed, 'gone'],
  ]) {
    const box = await session({ binary: fake(`echo '${hello}'\n${script}`) })
    await assert.rejects(box.run({ command: ['true'] }), (e) => e instanceof kind && e.message.includes(text), script)
    await box.close()
  }
})

