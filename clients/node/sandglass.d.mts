/** A value of an option of `sandglass run`; an array for one that may be repeated. */
export type OptionValue = string | number | boolean | ReadonlyArray<string | number>

/** Options of `sandglass run` in camel case or as they are: timeout, memory, allowHost, 'output-limit'. */
export interface Options {
  [name: string]: OptionValue | null | undefined
}

type Value = string | number | null
type Many = string | readonly string[] | null

/** Options that may stand among the fields, without one of their own. What is undefined or null has its default. */
export interface RunOptions {
  image?: string | null
  entrypoint?: string | null
  envFile?: Many
  workdir?: string | null
  user?: Value
  venv?: string | null
  volume?: Many
  mount?: Many
  outFiles?: Value
  outLimit?: Value
  timeout?: Value
  cpuTime?: Value
  memory?: Value
  memorySwap?: Value
  cpus?: Value
  pidsLimit?: Value
  disk?: Value
  diskInodes?: Value
  outputLimit?: Value
  onOutputLimit?: string | null
  openFiles?: Value
  ulimit?: Many
  deviceReadBps?: Many
  deviceWriteBps?: Many
  deviceReadIops?: Many
  deviceWriteIops?: Many
  network?: string | null
  seccomp?: string | null
  securityOpt?: Many
  proc?: string | null
  hostId?: string | null
  pty?: boolean | null
  allowHost?: Many
  tlsSniCheck?: Value
  netConnections?: Value
  netConnectionsTotal?: Value
  netUpload?: Value
  netDownload?: Value
  netRate?: Value
  netIdle?: Value
  explainDenials?: boolean | null
}

/** What holds for all runs of a session, and is said when it is started. */
export interface ForAll {
  allowDegraded?: Many
  allowMount?: Many
  cgroupParent?: string | null
}

/** Bytes to send. */
export type Bytes = Uint8Array | ArrayBuffer

/** A file that is in /work when the program starts: data, or the host's file source. */
export interface FileSpec {
  path: string
  data?: string | Bytes
  source?: string
  executable?: boolean
}

/** What to run: one of code (with lang), command and file; and its limits. */
export interface Request extends RunOptions {
  code?: string
  lang?: string
  /** Words, not a line of shell. */
  command?: readonly string[]
  /** A script of the host's. */
  file?: string
  args?: readonly string[]
  env?: Record<string, string>
  stdin?: string | Bytes
  files?: Record<string, string | Bytes> | readonly FileSpec[]
  /** The files of /out come with the result, up to this size in all: '1m'. */
  artifactsInline?: string | number
  /** The files of /out are copied there. */
  artifactsDir?: string
  /** Files that are there already are replaced. */
  force?: boolean
  /** Options as well: any, by any of its names. */
  options?: Options
  /** Its abort cancels the run. */
  signal?: AbortSignal
}

/** Options here are the default of every run. */
export interface SessionOptions extends RunOptions, ForAll {
  binary?: string
  /** Flags of `sandglass session` as they stand. */
  flags?: readonly string[]
  maxRunning?: number
  maxQueued?: number
  /** Variables of every program. */
  env?: Record<string, string>
  /** Sandboxes that are kept ready: 'python=2,command=4'. */
  warm?: string
  warmAge?: Value
  options?: Options
}

/** A piece of a stream. */
export class Output {
  readonly stream: 'stdout' | 'stderr'
  readonly data: Uint8Array
  get text(): string
}

/** What the program left in /out. path is hostile text: do not join it to a directory of the host's. */
export interface Artifact {
  readonly path: string
  readonly type: string
  readonly size: number
  readonly mode: string
  readonly sha256?: string
  /** Why it was not copied. */
  readonly skipped?: string
  /** With artifactsInline. */
  readonly data?: Uint8Array
  readonly raw: Record<string, unknown>
}

/** What a run came to; raw is the whole object of docs/result.schema.json. */
export class Result {
  readonly outcome: 'exited' | 'signaled' | 'timeout' | 'cpu_time' | 'memory' | 'output' | 'canceled' | 'refused' | 'failed'
  readonly exitCode: number
  /** It had a sandbox that was ready. */
  readonly warm: boolean
  readonly signal?: number
  /** What did not reach the caller. */
  readonly error?: string
  readonly hints: string[]
  readonly wallMs: number
  readonly setupMs: number
  readonly cpuMs: number
  readonly memoryPeakBytes: number
  readonly pidsPeak: number
  readonly oomKills: number
  readonly stdoutBytes: Uint8Array
  readonly stderrBytes: Uint8Array
  readonly stdoutTruncated: boolean
  readonly stderrTruncated: boolean
  readonly artifacts: Artifact[]
  readonly raw: Record<string, unknown>
  get stdout(): string
  get stderr(): string
  /** Whether the program ended by itself with 0, and all that it made is here. */
  get ok(): boolean
  /** This result; throws RunError when it is not ok. */
  check(): Result
}

/** What sandglass refused or could not do. */
export class SandglassError extends Error {
  /** Lines that can be pasted. */
  readonly hints: string[]
  readonly exitCode?: number
  readonly result?: Result
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
/** A run that came to no good end. */
export class RunError extends SandglassError {}
/** The run was cancelled; result is undefined when it had not been started. */
export class Canceled extends RunError {}
/** sandglass itself failed in the middle of the run. */
export class Failed extends RunError {}

/** One run: its output with for await, if it was submitted with stream: true, and then its result. */
export class Run implements AsyncIterable<Output> {
  private constructor()
  readonly id: string
  get done(): boolean
  /** End the run; result() then rejects with Canceled, unless the program was quicker. What it writes from now on is dropped. */
  cancel(): void
  /** The result, when the run has ended; output that nobody took is dropped. */
  result(): Promise<Result>
  /** Leaving the loop before the end cancels the run. */
  [Symbol.asyncIterator](): AsyncIterator<Output>
}

/** One `sandglass session`, in which any number of runs may be under way. */
export class Session {
  private constructor()
  static start(options?: SessionOptions): Promise<Session>
  get version(): string
  get languages(): string[]
  /**
   * Start a run and do not wait for its end. Of a streamed one 8 MiB wait until they are taken; past that its program
   * is held up, and nobody else. In a session without the feature window it is cancelled when nothing is taken for 10 s
   * and others wait.
   */
  submit(request: Request & { stream?: boolean }): Promise<Run>
  /** Run one program in a fresh sandbox and wait for its end. */
  run(request: Request & { onOutput?: (piece: Output) => void | Promise<void> }): Promise<Result>
  /** Cancel what runs, and wait until the session and all of its sandboxes are gone. */
  close(): Promise<void>
}

/** Run one program in a fresh sandbox. Many at once: Session. */
export function run(request: Request & ForAll & {
  binary?: string
  flags?: readonly string[]
  onOutput?: (piece: Output) => void | Promise<void>
}): Promise<Result>
