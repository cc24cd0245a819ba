import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** A process of the benchmark's own; disposing of it ends it. */
export interface Child extends AsyncDisposable {
  readonly pid: number
  /** Resolves with the first line of stdout that `matches` accepts. @throws Error when the process ends or a minute goes by */
  line(matches: (line: string) => boolean): Promise<string>
  /** SIGTERM, and SIGKILL where that has no effect within 30 s. @returns its exit code */
  stop(): Promise<number | null>
}

export interface ChildOptions {
  script: string
  args?: readonly string[]
  env?: Record<string, string>
  /** Flags for node itself. */
  flags?: readonly string[]
  /** What it says on stderr does not go to ours. */
  quiet?: boolean
}

const patienceMs = 30_000
const lineWithinMs = 60_000
const keptLines = 200

/** A benchmark that fails leaves at once; what it started must not go on without it. */
const living = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** Starts a script under this very node. */
export function startChild({ script, args = [], env = {}, flags = [], quiet = false }: ChildOptions): Child {
  const child = spawn(process.execPath, [...flags, script, ...args], {
    env: { PATH: process.env.PATH ?? '', NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', quiet ? 'ignore' : 'inherit'],
  })
  const gone = once(child, 'exit')
  living.add(child)
  void gone.then(() => living.delete(child))
  const seen: string[] = []
  const listeners = new Set<(line: string) => void>()
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
    seen.push(line)
    if (seen.length > keptLines) seen.shift()
    for (const listener of listeners) listener(line)
  })
  const stop = () => end(child, gone)
  return {
    pid: child.pid as number,
    line: (matches) =>
      new Promise((resolve, reject) => {
        const already = seen.find(matches)
        if (already !== undefined) return resolve(already)
        const look = (line: string) => {
          if (!matches(line)) return
          listeners.delete(look)
          resolve(line)
        }
        listeners.add(look)
        const complain = (what: string) =>
          reject(new Error(`${script} ${what}; it said last: ${seen.slice(-5).join('\n')}`))
        void gone.then(() => complain('ended'))
        setTimeout(() => complain('does not say that it runs'), lineWithinMs).unref()
      }),
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
    },
  }
}

async function end(child: ChildProcess, gone: Promise<unknown[]>): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    await gone
    clearTimeout(timer)
  }
  return child.exitCode
}
