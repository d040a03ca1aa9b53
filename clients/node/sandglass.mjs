// Run code that a model wrote, each time in a fresh sandbox that is thrown away.
//
//   import { Session } from './sandglass.mjs'
//
//   const box = await Session.start({ memory: '128m', timeout: '5s' })
//   const result = await box.run({ code: 'console.log(6 * 7)', lang: 'node' })
//   console.log(result.stdout, result.outcome, result.exitCode)
//   await box.close()
//
// A Session is one `sandglass session` process; many runs may be under way in it.
// Every run has a sandbox of its own. The program's own end, its timeout and its
// death out of memory are results; what sandglass itself refuses or cannot do is a
// SandglassError. A Session that is forgotten, and of which nobody has a run or waits for
// one, is closed; one that is left open ends when the process does.
//
// Text that a model wrote belongs into code, stdin, files and args. file, a file's
// source, artifactsDir and options name things of the host's and are the caller's
// to choose: docs/SESSION.md.
//
// Node 18 or newer, no dependencies.

import { spawn } from 'node:child_process'
import { resolve } from 'node:path'

const PROTOCOL = 1
// How much streamed output of one run may wait until somebody takes it. Then the
// session sends no more of it, which holds up the program.
const MAX_WAITING = 8 << 20
// Of a result that is no output: limits, layers, hosts, the names of artifacts.
const MAX_REST = 64 << 20
const MAX_STDERR = 64 << 10
// A session that knows no windows is not read on then. How long a run of which nothing
// is taken may hold up the replies of others: the program chooses how much it writes,
// and must not choose what else is answered.
const PATIENCE_MS = 10_000
const START_MS = 60_000
const END_MS = 30_000
// How long a session that has not said hello may take to end when it is told to.
const LEAVING_MS = 5_000

/** What sandglass refused or could not do; hints are lines that can be pasted. */
export class SandglassError extends Error {
  constructor(message, { hints = [], exitCode, result } = {}) {
    super(message)
    this.name = new.target.name
    this.hints = hints
    this.exitCode = exitCode
    this.result = result
  }
}
/** The binary could not be started. */
export class NotInstalled extends SandglassError {}
/** The request, or this host, is not good for a run: nothing was run. */
export class Refused extends SandglassError {}
/** The request has no form that the session takes, or names what there is not: nothing was run. */
export class RequestError extends SandglassError {}
/** Too many runs wait: try again after one has ended. */
export class Busy extends SandglassError {}
/** What was started does not speak this version of the protocol. */
export class ProtocolError extends SandglassError {}
/** The session has ended, and the run with it. */
export class SessionClosed extends SandglassError {}
/** A run that came to no good end; result says which, when there was one. */
export class RunError extends SandglassError {}
/** The run was cancelled; result is undefined when it had not been started. */
export class Canceled extends RunError {}
/** sandglass itself failed in the middle of the run. */
export class Failed extends RunError {}

const KINDS = { closing: SessionClosed, malformed: RequestError, too_large: RequestError, canceled: Canceled }

const data = (o) => (o.base64 !== undefined ? Buffer.from(o.base64, 'base64') : Buffer.from(o.text ?? ''))

/** A piece of a stream. */
export class Output {
  constructor(stream, bytes) {
    this.stream = stream
    this.data = bytes
  }
  get text() { return this.data.toString() }
}

// Of what a program wrote, for a message: no terminal may be told anything by it.
const lastLine = (text) => text.trimEnd().split(/\r\n|[\n\r\v\f]/).at(-1).slice(0, 200).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')

function artifact(o) {
  const kept = o.type === 'file' && !o.skipped && (o.text !== undefined || o.base64 !== undefined || o.size === 0)
  return { path: o.path, type: o.type, size: o.size, mode: o.mode, sha256: o.sha256, skipped: o.skipped?.replace('use --force', 'use force: true'),
    data: kept ? data(o) : undefined, raw: o }
}

/** What a run came to; raw is the whole object of docs/result.schema.json. */
export class Result {
  constructor(o) {
    this.outcome = o.outcome
    this.exitCode = o.exit_code
    this.warm = o.warm ?? false
    this.signal = o.signal
    this.error = o.error && said(o.error)
    this.hints = (o.hints ?? []).map(hint)
    this.wallMs = o.wall_ms
    this.setupMs = o.setup_ms
    this.cpuMs = o.cpu_ms
    this.memoryPeakBytes = o.memory_peak_bytes
    this.pidsPeak = o.pids_peak
    this.oomKills = o.oom_kills
    this.stdoutBytes = data(o.stdout)
    this.stderrBytes = data(o.stderr)
    this.stdoutTruncated = o.stdout.truncated
    this.stderrTruncated = o.stderr.truncated
    this.artifacts = o.artifacts.map(artifact)
    this.raw = o
  }
  get stdout() { return this.stdoutBytes.toString() }
  get stderr() { return this.stderrBytes.toString() }
  /** Whether the program ended by itself with 0, and all that it made is here. */
  get ok() { return this.outcome === 'exited' && this.exitCode === 0 && !this.error }
  /** This result; throws RunError when it is not ok. */
  check() {
    if (this.ok) return this
    const what = `the program ended as ${this.outcome}, exit code ${this.exitCode}`
    throw new RunError([what, this.error, lastLine(this.stderr)].filter(Boolean).join(': '), { result: this, exitCode: this.exitCode, hints: this.hints })
  }
}

// The result of a last reply; throws what else it stands for.
function outcome(reply) {
  if (reply.type === 'result') {
    const result = new Result(reply.result)
    const more = { result, exitCode: result.exitCode, hints: result.hints }
    if (result.outcome === 'canceled') throw new Canceled('the run was cancelled', more)
    if (result.outcome === 'failed' || result.outcome === 'refused') throw new Failed(result.error ?? result.outcome, more)
    return result
  }
  if (reply.code === 'refused') throw refusal(reply.error, { hints: reply.hints ?? [], exitCode: reply.exit_code })
  const more = { hints: (reply.hints ?? []).map(hint), exitCode: reply.exit_code }
  if (reply.code === 'busy') {
    more.hints = [...more.hints, 'try again when a run has ended', 'Session.start({ maxQueued: 1000 })']
    throw new Busy(`the session is busy: ${reply.error}`, more)
  }
  throw new (KINDS[reply.code] ?? ProtocolError)(reply.error, more)
}

// What a run has beside the options, and what only a session can have.
const FIELDS = ['code', 'lang', 'command', 'file', 'args', 'env', 'stdin', 'files', 'artifactsInline', 'artifactsDir', 'force', 'options',
  'signal', 'stream', 'onOutput']
const FOR_ALL = ['allowDegraded', 'allowMount', 'cgroupParent']
const SESSION = [...FOR_ALL, 'maxRunning', 'maxQueued', 'warm', 'warmAge', 'binary', 'flags']

const camel = (flag) => flag.replace(/-(.)/g, (_, c) => c.toUpperCase())

// How many letters make b of a.
function distance(a, b) {
  let row = [...Array(b.length + 1).keys()]
  for (let i = 1; i <= a.length; i++) {
    const last = row
    row = [i]
    for (let j = 1; j <= b.length; j++) row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] !== b[j - 1]))
  }
  return row[b.length]
}

const nearest = (name, list) => list.find((f) => name.startsWith(f)) ?? list.find((f) => distance(name, f) <= Math.min(2, f.length / 3))

function unknown(name, { hints = [], exitCode } = {}) {
  const near = nearest(name, FIELDS)
  if (near && !hints.some((h) => h.startsWith('did you mean'))) hints = [`did you mean ${near}?`, ...hints]
  return new RequestError(`unknown field ${name}`, { hints, exitCode })
}

// Hints are lines for a shell, which stay, or are about flags. These are neither flags
// nor a whole run, which asFields reads; the first that fits is taken. SHELL is a line
// for a shell still, and keeps its kind of comment.
const SHELL = true
const HINTS = [
  [/^"output": "stream"$/, () => 'run({ onOutput }), or submit({ stream: true })'],
  [/^"artifacts": {"inline": "(.+)"}$/, (_, size) => `artifactsInline: '${size}'`],
  [/^"artifacts": {"dir": "(.+)"}$/, (_, dir) => `artifactsDir: '${dir}'`],
  [/^"options": {"volume": "(.+)"}$/, (_, volume) => `volume: '${volume}'`],
  [/^--out a new directory$/, () => "artifactsDir: '...'   // a new directory"],
  [/^did you mean --([a-z-]+)\?$/, (_, flag) => `did you mean ${camel(flag)}?`],
  [/^leave --([a-z-]+)(?: none)? out(:.*|)$/, (_, flag, why) => `leave ${camel(flag)} out${why}`],
  [/^leave --([a-z-]+) out, or (--.+)$/, (_, flag, other) => `leave ${camel(flag)} out, or ${hint(other)}`],
  [/^(?!sandglass run )([a-z][a-z', ]*: )((?:-|sandglass run ).+)$/, (_, why, line) => why + hint(line)],
  [/^sandglass run \S+ &$/, () => 'submit({ ... })'],
  [/^sandglass [a-z]+ --help$/, (line) => line, SHELL],
  [/^echo '(.+)' \| sandglass run - --lang (\S+)$/, (_, code, lang) => `code: '${code}', lang: '${lang}'`],
  [/^(.+); sandglass run --cgroup-parent (\S+) script\.py$/, (_, line, path) => `${line}   # and then Session.start({ cgroupParent: '${path}' })`, SHELL],
  [/^((?:PATH=|setpriv |sudo |systemd-run |unshare )(?:.+ )?)sandglass run (?:--\S+ \S+ )*(?:script\.py|FILE)\b(.*)$/, (_, line, rest) => `${line}node script.mjs${rest}`, SHELL],
]
const SHORT = { '-c': 'code', '-e': 'env', '-i': 'stdin', '-m': 'memory', '-u': 'user', '-v': 'volume', '-w': 'workdir', '--out': 'artifactsDir' }
const SWITCHES = ['stdin', 'force', 'pty', 'explainDenials', 'readOnly']

// A hint of the command line's in this library's words, where it is about flags. It repeats
// arguments that a model chose: whatever they are, the refusal or the result has to arrive.
function hint(line) {
  try {
    const at = line.lastIndexOf('   # ') // inside of quotes it leaves one open, which stays as it is
    const [body, note] = at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at)]
    const [pattern, to, shell] = HINTS.find(([pattern]) => pattern.test(body)) ?? []
    const text = pattern ? body.replace(pattern, to) : asFields(body)
    return text && !shell ? text + note.replace('#', '//') : (text || body) + note
  } catch {
    return line
  }
}

const WORD = /(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+/g
const unquoted = (word) => word.replace(/'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/g,
  (_, single, double, one) => single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? one)

// The words of a line of shell. What our own text has and no argument, which comes in
// single quotes, begins with a NUL: an open < and a variable.
function shellWords(line) {
  if (line.includes('\0') || line.replace(WORD, '').trim()) throw new Error('no line of shell')
  return (line.match(WORD) ?? []).map((word) => (/^(<|"\$)/.test(word) ? '\0' : '') + unquoted(word))
}

// Flags, or a line that begins with sandglass run, as fields; empty for anything else.
function asFields(line) {
  const whole = line.startsWith('sandglass run ')
  if ((!whole && !line.startsWith('-')) || line.includes("$'")) return '' // a word that only a shell can say
  const words = shellWords(line).slice(whole ? 2 : 0)
  const got = Object.create(null)
  while (words[0]?.startsWith('-') && words[0] !== '--') {
    const [flag, inline] = words.shift().split(/=(.*)/s)
    if (!flag.startsWith('--') && !(flag in SHORT)) return ''
    const name = SHORT[flag] ?? camel(flag.slice(2))
    if (inline === undefined && !SWITCHES.includes(name) && !words.length) return ''
    const list = (got[name] ??= [])
    list.push(inline ?? (SWITCHES.includes(name) ? '' : words.shift()))
  }
  if (words.length && !whole) return ''
  if (whole) {
    delete got.allowDegraded // the session has it
    program(words, got)
  }
  const names = Object.keys(got)
  const text = names.map((name) => `${name}: ${value(name, got[name])}`).join(', ')
  if (names.some((name) => FOR_ALL.includes(name))) return `Session.start({ ${text} }), or run({ ..., ${text} })`
  return names.some((name) => SESSION.includes(name)) ? `Session.start({ ${text} })` : text
}

// What follows the flags of a run: a command, a file, or an image with a command.
function program(words, got) {
  const from = words.findIndex((word) => word.startsWith('\0<'))
  if (from >= 0) {
    const name = words[from].slice(2) || words[from + 1]
    if (!name) throw new Error('no line of shell')
    got.stdin = [name]
  }
  const [first, ...rest] = from < 0 ? words : words.slice(0, from)
  if (first === '--') {
    got.command = rest
  } else if (first !== undefined) {
    const file = got.lang || got.venv || got.image || first === 'FILE' || first.startsWith('/') || first.endsWith('.py')
    got[file ? 'file' : 'image'] = [first]
    if (rest.length) got[file ? 'args' : 'command'] = rest
  }
}

// One field's value as JavaScript has it.
function value(name, values) {
  if (name === 'stdin') return values[0] ? `readFileSync(${literal(values[0])})` : 'data'
  if (SWITCHES.includes(name)) return 'true'
  if (name === 'env') {
    const pairs = values.map((v) => v.split(/=(.*)/s)).map(([k, v]) => `${k}: ${v === undefined ? `process.env.${k}` : literal(v)}`)
    return `{ ${pairs.join(', ')} }`
  }
  return values.length > 1 || ['command', 'args'].includes(name) ? `[${values.map(literal).join(', ')}]` : literal(values[0])
}

// A word of a shell's, in which hints have these two of its variables.
function literal(word) {
  if (word === '\0$(id -u)') return 'process.getuid()'
  if (word.startsWith('\0$PWD')) return ['process.cwd()', ...(word.length > 5 ? [literal(word.slice(5))] : [])].join(' + ')
  return `'${word.replace(/[\\']/g, '\\$&')}'`
}

// What a refusal and the error of a result say about flags. Names of the caller's and the
// program's are in it too, so that these alone are touched.
const SAID = [
  [/^artifacts: inline: /, () => 'artifactsInline: '],
  [/^--out(?=:| (?!is ))/, () => 'artifactsDir'],
  [/^--([a-z][a-z-]*)(?=: | is refused: | takes | means )/, (_, flag) => camel(flag)],
  [/(?<= means nothing without )--([a-z-]+)$/, (_, flag) => camel(flag)],
  [/(?<=: )--(workdir is there)$/, (_, rest) => rest],
  [/(?<= is refused: )it is the field artifacts of a request$/, () => 'it is artifactsDir or artifactsInline of a run'],
  [/(?<= is refused: it is the field [a-z]+ of a) request$/, () => ' run'],
]
const said = (text) => SAID.reduce((t, [pattern, to]) => t.replace(pattern, to), text)

function refusal(what, { hints, exitCode }) {
  const more = { hints: hints.map(hint), exitCode }
  const m = /^unknown flag "--([^"]*)"$/.exec(what)
  if (m) return unknown(camel(m[1]), more)
  return new Refused(said(what), more)
}

const kind = (v) => (v === null ? 'null' : Array.isArray(v) ? 'an array' : typeof v !== 'object' || isMap(v) ? `of type ${typeof v}` : named(v))
const named = (v) => `of class ${Object.getPrototypeOf(v).constructor?.name || 'unknown'}`
const isText = (v) => typeof v === 'string'
const isBytes = (v) => isText(v) || ArrayBuffer.isView(v) || v instanceof ArrayBuffer || v instanceof SharedArrayBuffer
const isFlag = (v) => typeof v === 'boolean'
// An object as {} makes it, here or in another realm, or without a prototype. What a Map, a
// Date or an instance of a class holds is in no field of its own: limits in one would be none.
function isMap(v) {
  const proto = typeof v === 'object' && v !== null ? Object.getPrototypeOf(v) : undefined
  return proto === null || (proto !== undefined && Object.getPrototypeOf(proto) === null && Object.hasOwn(proto, 'isPrototypeOf'))
}

function need(name, value, is, wanted) {
  if (!is(value)) throw new RequestError(`${name} is ${kind(value)}, and must be ${wanted}`)
}

// A path of the host's. An empty one would be made the caller's directory.
function path(name, value) {
  need(name, value, isText, 'a string')
  if (value === '') throw new RequestError(`${name} is empty, and must be a path`)
  return value
}

function words(name, value) {
  need(name, value, Array.isArray, 'an array of strings')
  for (const [n, v] of value.entries()) need(`${name}[${n}]`, v, isText, 'a string')
}

function texts(name, value, is, wanted) {
  need(name, value, isMap, `a plain object with ${wanted} in each field`)
  for (const [k, v] of Object.entries(value)) need(`${name}[${JSON.stringify(k)}]`, v, is, wanted)
}

// What is undefined or null is left out, and has its default.
function given(name, fields) {
  need(name, fields, isMap, 'a plain object')
  return Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== undefined && v !== null))
}

// Options, which stand among the fields or in one of their own.
function merged({ options, ...more }) {
  for (const [name, value] of Object.entries(given('options', options ?? {}))) {
    const there = Object.keys(more).find((k) => dashed(k) === dashed(name))
    if (there !== undefined) throw new RequestError(`${there} is there twice: beside options and in it`)
    more[name] = value
  }
  return more
}

const dashed = (name) => name.replace(/[A-Z]/g, (c) => '-' + c.toLowerCase()).replaceAll('_', '-')

function option(name, value) {
  if (Array.isArray(value)) return value.map((v) => option(name, v))
  if (['string', 'boolean'].includes(typeof value) || Number.isFinite(value)) return value
  const is = typeof value === 'number' ? value : kind(value)
  throw new RequestError(`option ${name} is ${is}, and must be a string, number, boolean or array of these`)
}

// Options as flags: { allowHost: ['a', 'b'] } is --allow-host=a --allow-host=b.
function flags(defaults) {
  const list = []
  for (const [name, value] of Object.entries(defaults)) {
    for (const v of [option(name, value)].flat()) {
      list.push(`--${dashed(name)}=${v}`)
    }
  }
  return list
}

const bytes = (v) => Buffer.from(v.buffer ?? v, v.byteOffset, v.byteLength).toString('base64')

function put(o, text, binary, value) {
  if (typeof value === 'string') o[text] = value
  else o[binary] = bytes(value)
}

function file(spec, n) {
  const { path: to, data, source, executable, ...more } = given(`files[${n}]`, spec)
  need(`files[${n}].path`, to, isText, 'a string')
  for (const name of Object.keys(more)) throw unknown(`${name} of file ${to}`)
  const o = { path: to }
  if ((data === undefined) === (source === undefined)) throw new RequestError(`file ${to} has one of data and source`)
  if (data !== undefined) {
    need(`files[${n}].data`, data, isBytes, 'a string or bytes')
    put(o, 'text', 'base64', data)
  } else {
    o.from = resolve(path(`files[${n}].source`, source))
  }
  if (executable !== undefined) need(`files[${n}].executable`, executable, isFlag, 'true or false')
  if (executable) o.executable = true
  return o
}

function listed(files) {
  if (Array.isArray(files)) return files.map(file)
  texts('files', files, isBytes, 'a string or bytes')
  return Object.entries(files).map(([path, data]) => file({ path, data }, JSON.stringify(path)))
}

// Each field's type, by its name; the session would say what it met, and not where.
function check(fields, options) {
  const size = (v) => isText(v) || typeof v === 'number'
  for (const [name, is, wanted] of [['code', isText, 'a string'], ['lang', isText, 'a string'], ['file', isText, 'a string'],
    ['stdin', isBytes, 'a string or bytes'], ['artifactsInline', size, 'a size'], ['artifactsDir', isText, 'a string'],
    ['force', isFlag, 'true or false']]) {
    if (fields[name] !== undefined) need(name, fields[name], is, wanted)
  }
  if (fields.force && fields.artifactsDir === undefined) throw new RequestError('force is for artifactsDir: what is there is replaced')
  if (fields.command !== undefined) words('command', fields.command)
  if (fields.args !== undefined) words('args', fields.args)
  if (fields.env !== undefined) texts('env', fields.env, isText, 'a string')
  for (const name of Object.keys(options)) {
    const one = camel(dashed(name))
    if (SESSION.includes(one)) throw new RequestError(`${one} is for the whole session, and not for one run of it`, { hints: [`Session.start({ ${one} })`] })
  }
  const ways = ['code', 'command', 'file']
  if (ways.filter((name) => fields[name] !== undefined).length !== 1) {
    const meant = Object.keys(options).find((name) => nearest(name, ways))
    if (meant) throw unknown(meant)
    throw new RequestError('a run has one of code (with lang), command and file')
  }
}

function request(fields) {
  const { code, lang, command, file: script, args, env, stdin, files, artifactsInline, artifactsDir, force, ...more } = fields
  if (typeof command === 'string') throw new RequestError("command is an array of words; for a line of shell: command: ['sh', '-c', line]")
  const options = merged(more)
  check(fields, options)
  const o = { code, lang, command, args, env, file: script === undefined ? undefined : resolve(path('file', script)) }
  if (stdin !== undefined) put(o, 'stdin', 'stdin_base64', stdin)
  if (files !== undefined) o.files = listed(files)
  if (artifactsInline !== undefined && artifactsDir !== undefined) throw new RequestError('artifactsInline and artifactsDir exclude each other')
  if (artifactsInline !== undefined) o.artifacts = { inline: artifactsInline }
  if (artifactsDir !== undefined) o.artifacts = { dir: resolve(path('artifactsDir', artifactsDir)), force: Boolean(force) }
  const wanted = Object.entries(options)
  if (wanted.length) o.options = Object.fromEntries(wanted.map(([name, v]) => [dashed(name), option(name, v)]))
  return o
}

// Lines of bounded length out of blocks of any size.
class Lines {
  most = 1 << 20
  blocks = []
  length = 0; // what follows begins with an operator

  *feed(block) {
    for (let at; (at = block.indexOf(10)) >= 0; block = block.subarray(at + 1)) {
      this.blocks.push(block.subarray(0, at))
      const line = Buffer.concat(this.blocks)
      this.blocks = []
      this.length = 0
      yield line
    }
    if (block.length) this.blocks.push(block)
    this.length += block.length
    if (this.length > this.most) throw new ProtocolError(`a reply is longer than ${this.most} bytes`)
  }
}

// A run as its session knows it. Who waits for it hangs on it, and with that the Session, which it has not itself.
class Going {
  #core
  #pieces = []
  #waiting = 0
  #dropping = false
  #wake = []
  #forget
  #reply
  #failure
  #stream
  #window // of a session that knows windows: it sends no more than has room here
  #taken = { pieces: 0, bytes: 0 } // and not yet told to the session
  #full = 0 // since when nothing was taken
  #givenUp = false

  constructor(core, id, stream) {
    this.#core = core
    this.id = id
    this.#stream = stream
    const { features, limits } = core.hello
    if (stream && features.includes('window')) this.#window = { bytes: Math.min(limits.window_bytes, MAX_WAITING), pieces: limits.window_pieces }
  }

  get held() { return { bytes: this.#waiting + this.#taken.bytes, pieces: this.#pieces.length + this.#taken.pieces } }

  get window() { return this.#window?.bytes }

  // Room is given back some at a time: a line for each piece would cost more than the piece.
  #give(pieces, bytes) {
    const taken = this.#taken
    taken.pieces += pieces
    taken.bytes += bytes
    if (!this.#window || (taken.pieces * 4 < this.#window.pieces && taken.bytes * 4 < this.#window.bytes)) return
    this.#core.more(this.id, taken.pieces)
    this.#taken = { pieces: 0, bytes: 0 }
  }

  get done() { return this.#reply !== undefined || this.#failure !== undefined }

  cancel() {
    this.#dropping = true
    this.#core.flow()
    if (!this.done) this.#core.cancel(this.id)
  }

  async result() {
    this.drop()
    while (!this.done) await this.#change()
    if (!this.#reply) throw this.#failure()
    try {
      return outcome(this.#reply)
    } catch (e) {
      throw this.#givenUp && e instanceof Canceled ? this.#canceled(e.result) : e
    }
  }

  #canceled(result) {
    return new Canceled(`nobody took the run's output for ${Run.patience / 1000} s, and other runs waited for it: it was cancelled`,
      { result, exitCode: result?.exitCode, hints: ['take it at once, or do without stream and onOutput'] })
  }

  get streams() { return this.#stream }

  async *pieces() {
    let whole = false
    try {
      for (;;) {
        const piece = this.#pieces.shift()
        if (piece) {
          this.#waiting -= piece.data.length
          this.#full = 0
          this.#give(1, piece.data.length)
          this.#core.flow()
          yield piece
        } else if (this.#givenUp) {
          throw this.#canceled() // and no end that looks like the program's
        } else if (this.done) {
          whole = true
          return
        } else {
          await this.#change()
        }
      }
    } finally {
      if (!whole) this.abandon()
    }
  }

  #change() { return new Promise((wake) => this.#wake.push(wake)) }

  #changed() { for (const wake of this.#wake.splice(0)) wake() }

  get full() { return !this.#window && this.#waiting >= MAX_WAITING && !this.#dropping } // a window bounds what comes

  stuck() {
    if (!this.full) return
    const now = performance.now()
    this.#full ||= now
    if (now - this.#full < Run.patience) return
    this.#givenUp = true
    this.cancel()
    this.#changed()
  }

  drop() {
    this.#dropping = true
    this.#give(this.#pieces.length, this.#waiting)
    this.#pieces = []
    this.#waiting = 0
    this.#core.flow()
  }

  abandon() {
    this.drop()
    this.cancel()
  }

  put(piece) {
    if (this.#dropping) return this.#give(1, piece.data.length)
    this.#pieces.push(piece)
    this.#waiting += piece.data.length
    this.#changed()
  }

  heed(signal) {
    if (!signal) return
    if (signal.aborted) return this.cancel() // since the request was written
    const abort = () => this.cancel()
    signal.addEventListener('abort', abort, { once: true })
    this.#forget = () => signal.removeEventListener('abort', abort)
  }

  end(reply, failure) {
    this.#reply = reply
    this.#failure = failure
    this.#forget?.()
    this.#changed()
  }
}

/** One run: its output with for await, if it was submitted with stream: true, and then its result. */
export class Run {
  #going
  #session // which is not closed as forgotten while somebody has a run of it, or waits for one
  static patience = PATIENCE_MS

  /** @internal */
  constructor(going, session) {
    this.#going = going
    this.#session = session
    this.id = going.id
  }

  /** @internal */
  get waiting() {
    const { full, held, window } = this.#going
    return { full, ...held, window }
  }

  get done() { return this.#going.done }

  /** End the run; result() then rejects with Canceled, unless the program was quicker. What it writes from now on is dropped. */
  cancel() { this.#going.cancel() }

  /** The result, when the run has ended; output that nobody took is dropped. */
  async result() {
    try {
      return await this.#going.result()
    } finally {
      this.#session // until here
    }
  }

  [Symbol.asyncIterator]() {
    if (!this.#going.streams) throw new RequestError('the run was not submitted with stream: true: its output is in its result')
    return this.#iterate()
  }

  // Leaving the loop before the end cancels the run: nobody takes its output.
  async *#iterate() {
    try {
      yield* this.#going.pieces()
    } finally {
      this.#session // until here
    }
  }
}

// A session's process and its pipes.
class Core {
  hello
  #child
  #runs = new Map()
  #next = 0
  #dead // makes the error for whoever comes
  #closing = false
  #lines = new Lines()
  #stderr = Buffer.alloc(0)
  #ended
  #greeted
  #looks

  constructor(binary, args) {
    this.binary = binary
    // A session of its own: Ctrl-C is for the caller, who cancels what it wants to.
    // It ends with its pipes, whatever becomes of the caller.
    this.#child = spawn(binary, ['session', ...args], { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
    const { stdin, stdout, stderr } = this.#child // none when there are no descriptors left
    for (const pipe of [stdin, stdout, stderr]) pipe?.on('error', () => {}) // it has ended, as stdout says
    stderr?.on('data', (b) => { this.#stderr = Buffer.concat([this.#stderr, b]).subarray(-MAX_STDERR) })
    stdout?.on('data', (b) => this.#read(b))
    this.#ended = new Promise((done) => {
      this.#child.on('error', (e) => {
        this.#die(() => new NotInstalled(`${binary}: ${e.code ?? e.message}`, { hints: ["Session.start({ binary: '/usr/local/bin/sandglass' })"] }))
        if (this.#child.pid === undefined) done()
      })
      this.#child.on('close', (code, signal) => {
        this.#die(this.#why(code, signal))
        done()
      })
    })
  }

  async start() {
    const timer = setTimeout(() => this.#giveUp(), START_MS)
    await new Promise((done) => {
      this.#greeted = done
      if (this.#dead) done()
    })
    clearTimeout(timer)
    if (this.#dead) {
      await this.#ended
      throw this.#dead()
    }
    this.#keep()
    return this
  }

  #read(block) {
    try {
      for (const line of this.#lines.feed(block)) this.#take(JSON.parse(line.toString()))
    } catch (e) {
      this.#fail(e instanceof SandglassError ? e : new ProtocolError(`a reply that cannot be read: ${e.message}`))
    }
  }

  #take(reply) {
    if (!this.hello) {
      if (reply.type !== 'hello' || reply.protocol !== PROTOCOL) {
        throw new ProtocolError(`the session speaks protocol ${reply.protocol}, and this library ${PROTOCOL}`, { hints: ['npm update sandglass'] })
      }
      // A byte of output is six at most: \u0000.
      this.#lines.most = 6 * (2 * reply.limits.collect_bytes + reply.limits.inline_bytes) + MAX_REST
      this.hello = reply
      this.#greeted?.()
      return
    }
    if (reply.type === 'error' && ['cancel', 'more'].includes(reply.to)) return // the run was quicker
    const run = this.#runs.get(reply.id)
    switch (reply.type) {
      case 'result':
      case 'error':
        if (reply.id === undefined) throw new ProtocolError(`an error that is about no run: ${reply.error}`)
        this.#runs.delete(reply.id)
        run?.end(reply)
        this.flow()
        this.#keep()
        break
      case 'output':
        run?.put(new Output(reply.stream, data(reply)))
        this.flow()
    }
  }

  // Reads on, unless a run's output waits for somebody to take it.
  flow() {
    const full = [...this.#runs.values()].some((run) => run.full)
    const { stdout } = this.#child
    if (full) {
      stdout.pause()
      this.#looks ??= setInterval(() => this.#look(), 250).unref()
    } else {
      clearInterval(this.#looks)
      this.#looks = undefined
      if (stdout.isPaused()) stdout.resume()
    }
  }

  #look() { for (const run of this.#runs.values()) if (this.#runs.size > 1) run.stuck() }

  // An idle session keeps no program from ending.
  #keep() {
    const how = this.#runs.size || this.#closing ? 'ref' : 'unref'
    this.#child[how]()
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe[how]?.()
  }

  #why(code, signal) {
    const lines = this.#stderr.toString().split('\n').filter(Boolean)
    const after = (prefix) => lines.filter((l) => l.startsWith(prefix)).map((l) => l.slice(prefix.length))
    const [errors, hints] = [after('sandglass: error: '), after('hint: ')]
    if (errors.length && !this.hello) return () => refusal(errors[0], { hints, exitCode: code ?? undefined })
    if (this.#closing && code === 0) return () => new SessionClosed('the session is closed')
    const cut = this.#lines.length ? ', in the middle of a reply' : ''
    const what = `the session ended with ${signal ?? code}${cut}`
    if (!this.hello) return () => new ProtocolError(`no session was started: ${[what, ...lines.slice(-3)].join('; ')}`)
    return () => new SessionClosed([what, ...(errors.length ? errors : lines.slice(-3))].join(': '), { hints: hints.map(hint), exitCode: code ?? undefined })
  }

  // Everybody who waits is told why.
  #die(failure) {
    this.#dead ??= failure
    const left = [...this.#runs.values()]
    this.#runs.clear()
    for (const run of left) run.end(undefined, this.#dead)
    clearInterval(this.#looks)
    this.#greeted?.()
  }

  #fail(error) {
    this.#die(() => new error.constructor(error.message, error))
    this.kill()
  }

  // It may be making the sandboxes that it keeps ready: SIGKILL would leave their control
  // groups to the next start.
  #giveUp() {
    this.#die(() => new ProtocolError(`${this.binary} session says no hello`))
    this.#child.stdin?.end()
    this.#child.kill('SIGTERM')
    const timer = setTimeout(() => this.kill(), LEAVING_MS)
    this.#ended.then(() => clearTimeout(timer))
  }

  kill() {
    this.#child.kill('SIGKILL')
    this.#child.stdout?.resume() // to its end, or there is no close
  }

  async submit(fields, stream) {
    const id = String(++this.#next)
    const run = new Going(this, id, Boolean(stream))
    const line = JSON.stringify({ type: 'run', id, ...fields, output: stream ? 'stream' : 'collect', window: run.window })
    const length = Buffer.byteLength(line)
    if (length > this.hello.limits.line_bytes) {
      // The session could not say whose it was.
      throw new RequestError(`the request has ${length} bytes, and may have ${this.hello.limits.line_bytes}`, { hints: ['files: [{ path, source }]'] })
    }
    if (this.#dead) throw this.#closed()
    if (this.#closing) throw new SessionClosed('the session is closed')
    this.#runs.set(id, run)
    this.#keep()
    this.#child.stdin.write(line + '\n')
    return run
  }

  #closed() {
    const { message, hints } = this.#dead()
    return new SessionClosed(message, { hints })
  }

  cancel(id) {
    if (this.#runs.has(id)) this.#child.stdin.write(JSON.stringify({ type: 'cancel', id }) + '\n')
  }

  more(id, pieces) {
    if (this.#runs.has(id) && !this.#closing) this.#child.stdin.write(JSON.stringify({ type: 'more', id, pieces }) + '\n')
  }

  async close() {
    if (!this.#closing) {
      this.#closing = true
      this.#keep()
      for (const run of this.#runs.values()) run.abandon()
      this.#child.stdin.end()
    }
    const timer = setTimeout(() => this.kill(), END_MS)
    await this.#ended
    clearTimeout(timer)
  }
}

// Its process is one of the event loop's, and would stay as long as that.
const forgotten = new FinalizationRegistry((core) => { core.close() })

/** One `sandglass session`, in which any number of runs may be under way. */
export class Session {
  #core

  /** @internal */
  constructor(core) {
    this.#core = core
    forgotten.register(this, core)
  }

  /**
   * Start a session. All but binary, flags, maxRunning, maxQueued and env are the
   * flags of `sandglass run` and defaults for every run: memory: '128m',
   * allowHost: ['example.org:443']. binary is otherwise the environment variable
   * SANDGLASS, or sandglass on PATH.
   */
  static async start(fields = {}) {
    const { binary = process.env.SANDGLASS || 'sandglass', flags: more = [], env = {}, ...defaults } = given('what start() takes', fields)
    path('binary', binary)
    words('flags', more)
    texts('env', env, isText, 'a string')
    const list = [...more, ...flags(merged(defaults)), ...Object.entries(env).map(([k, v]) => `--env=${k}=${v}`)]
    for (const argument of [binary, ...list]) { // execve(2) would end it there
      if (argument.includes('\0')) throw new RequestError(`an argument of sandglass session has a NUL character: ${JSON.stringify(argument)}`)
    }
    return new Session(await new Core(binary, list).start())
  }

  get version() { return this.#core.hello.version }
  get languages() { return [...this.#core.hello.languages] }

  /**
   * Start a run, with what run() takes, and do not wait for its end. Of a streamed
   * one 8 MiB wait until they are taken; past that the program is held up, and
   * nobody else. A session without the feature window holds up others too: when
   * nothing is taken for 10 s, the run is cancelled there: Canceled.
   */
  async submit(fields) {
    const { stream = false, signal, onOutput, ...what } = given('what submit() takes', fields)
    need('stream', stream, isFlag, 'true or false')
    if (onOutput) throw new RequestError('onOutput is for run()', { hints: ['submit({ stream: true }), and for await of what it gives'] })
    return new Run(await this.#submit(what, stream, signal), this)
  }

  async #submit(what, stream, signal) {
    if (signal !== undefined) need('signal', signal, (v) => typeof v?.throwIfAborted === 'function', 'an AbortSignal')
    signal?.throwIfAborted()
    const going = await this.#core.submit(request(what), stream)
    going.heed(signal)
    return going
  }

  /**
   * Run one program in a fresh sandbox and wait for its end. There is one of code
   * (with lang), command (an array of words) and file (a script of the host's).
   * All that is no field is an option of `sandglass run`, as what is in options:
   * timeout: 5, memory: '64m'. What is undefined or null has its default.
   * onOutput gets each Output as it comes, and is awaited; the result has none
   * then. What it throws, and an abort of signal, cancel the run.
   */
  async run(fields) {
    const { onOutput, signal, stream, ...what } = given('what run() takes', fields)
    if (stream) throw new RequestError('stream is for submit()', { hints: ['run({ onOutput })'] })
    if (onOutput !== undefined) need('onOutput', onOutput, (v) => typeof v === 'function', 'a function')
    const run = await this.#submit(what, Boolean(onOutput), signal)
    try {
      if (onOutput) for await (const piece of run.pieces()) await onOutput(piece)
      return await run.result()
    } catch (e) {
      run.abandon()
      throw signal?.aborted && e instanceof Canceled ? signal.reason : e
    }
  }

  /** Cancel what runs, and wait until the session and all of its sandboxes are gone. */
  close() { return this.#core.close() }

  async [Symbol.asyncDispose ?? Symbol('asyncDispose')]() { await this.close() }
}

/**
 * Run one program in a fresh sandbox, with what Session.run takes and allowDegraded,
 * allowMount and cgroupParent of Session.start. Many at once: Session.
 */
export async function run(fields) {
  const { binary, flags: more, ...what } = given('what run() takes', fields)
  const forAll = {}
  for (const name of Object.keys(what)) {
    if (!FOR_ALL.includes(camel(dashed(name)))) continue
    forAll[name] = what[name]
    delete what[name]
  }
  const session = await Session.start({ binary, flags: more, maxRunning: 1, ...forAll })
  try {
    return await session.run(what)
  } finally {
    await session.close()
  }
}
