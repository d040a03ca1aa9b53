// Compiled by a test, never run: what callers write has the types that they expect.
import { Session, Refused, run, type Result } from './sandglass.mjs'

export async function use(): Promise<string[]> {
  const box: Session = await Session.start({ memory: '128m', allowHost: ['example.org:443'], maxRunning: 2, env: { A: 'b' } })
  const stop = new AbortController()
  const result: Result = await box.run({
    code: 'print(1)', lang: 'python', files: { a: 'text', b: new Uint8Array(1) }, timeout: 5, memory: '64m', allowHost: ['example.org'], cpus: undefined, options: { 'pids-limit': 9, disk: undefined }, signal: stop.signal,
    onOutput: (piece) => console.log(piece.stream, piece.text),
  })
  const started = await box.submit({ command: ['true'], stream: true, files: [{ path: 'x', source: '/x', executable: true }] })
  const texts: string[] = []
  for await (const piece of started) texts.push(piece.text)
  try {
    const alone = await run({ command: ['true'], artifactsInline: '1m', allowDegraded: ['cpu'] })
    texts.push(String(alone.check().warm))
  } catch (e) {
    if (e instanceof Refused) texts.push(...e.hints)
  }
  // @ts-expect-error a line of shell is no command
  await box.run({ command: 'echo hi' })
  // @ts-expect-error it is lang
  await box.run({ code: '1', language: 'node' })
  // @ts-expect-error it is timeout
  await Session.start({ timout: 5 })
  // @ts-expect-error it is for the session
  await box.run({ command: ['true'], allowDegraded: 'memory' })
  await box.close()
  return [...texts, result.stdout, ...result.artifacts.map((a) => a.path)]
}
