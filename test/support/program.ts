import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** How a program ended, and what it wrote. */
export interface Ended {
  /** Null if a signal ended the program. */
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** One of our programs as a process. Disposal stops it. */
export interface Program extends AsyncDisposable {
  readonly pid: number
  /**
   * Waits for a line that `matches`. An earlier line counts, too. @returns the line
   *
   * @throws Error with the last lines if the program ends before, or the line does not come in time
   */
  line(matches: (line: string) => boolean, which?: { nth?: number; mostMs?: number }): Promise<string>
  /** The last lines of stdout and stderr. */
  lastLines(): string
  signal(name: NodeJS.Signals): void
  /** Waits until the program ends. */
  ended(): Promise<Ended>
  /** Sends SIGTERM, then SIGKILL if the program does not end. @returns how it ended */
  stop(): Promise<Ended>
}

export interface ProgramOptions {
  args?: readonly string[]
  env?: Record<string, string>
  /** The program's file; by default the checkout's main.ts. */
  script?: string
  /** Flags for node itself. */
  flags?: readonly string[]
  folder?: string
  /** `pipe` adds stderr to the lines. */
  stderr?: 'pipe' | 'inherit' | 'ignore'
  /** Called with each line of both outputs. */
  onLine?: (line: string) => void
}

export const checkout = join(import.meta.dirname, '..', '..')

/** The checkout's main.ts. */
export const sourceMain = join(checkout, 'src', 'main.ts')

const linesMax = 10_000
const lastLinesMax = 40
const patienceMs = 30_000

/** Without the cache, each start strips the types of some 200 files again. */
const compileCache = join(checkout, 'node_modules', '.cache', 'outboxd-tests')

/** Running programs. They are killed if this process ends by an error or a signal. */
const living = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

/** Starts a program with this Node, and with little of our environment besides `env`. */
export function startProgram(options: ProgramOptions): Program {
  const { args = [], env = {}, script = sourceMain, flags = [], folder = checkout, stderr = 'pipe', onLine } = options
  const child = spawn(process.execPath, [...flags, script, ...args], {
    cwd: folder,
    env: { ...inherited(), NODE_ENV: 'production', NODE_COMPILE_CACHE: compileCache, ...env },
    stdio: ['ignore', 'pipe', stderr],
  })
  living.add(child)
  const heard = listen(child, onLine)
  const ended = once(child, 'close').then(() => {
    living.delete(child)
    return { code: child.exitCode, signal: child.signalCode, ...heard.output() }
  })
  const stop = () => {
    child.kill('SIGTERM')
    const impatience = setTimeout(() => child.kill('SIGKILL'), patienceMs)
    return ended.finally(() => clearTimeout(impatience))
  }
  const name = [script.slice(checkout.length + 1), ...args].join(' ')
  return {
    pid: child.pid as number,
    line(matches, { nth = 1, mostMs = 60_000 } = {}) {
      const complain = (how: string) => new Error(`${name} ${how}; it said last:\n${heard.lastLines()}`)
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(complain(`did not say so within ${mostMs} ms`)), mostMs)
        heard.find(matches, nth, (line) => {
          clearTimeout(timer)
          resolve(line)
        })
        void ended.then(({ code, signal }) => {
          clearTimeout(timer)
          reject(complain(`ended with ${code ?? signal}`))
        })
      })
    },
    lastLines: heard.lastLines,
    signal: (signal) => void child.kill(signal),
    ended: () => ended,
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
    },
  }
}

function inherited(): Record<string, string | undefined> {
  const { PATH, TMPDIR } = process.env
  return TMPDIR === undefined ? { PATH } : { PATH, TMPDIR }
}

/** Keeps the last lines of a process. */
function listen(child: ChildProcess, onLine?: (line: string) => void) {
  const lines: { line: string; stream: 'stdout' | 'stderr' }[] = []
  const listeners = new Set<(line: string) => void>(onLine ? [onLine] : [])
  for (const stream of ['stdout', 'stderr'] as const) {
    const input = child[stream]
    if (input === null) continue
    createInterface({ input }).on('line', (line) => {
      lines.push({ line, stream })
      if (lines.length > linesMax) lines.shift()
      for (const listener of listeners) listener(line)
    })
  }
  const textOf = (stream: string) =>
    lines.flatMap((each) => (each.stream === stream ? [`${each.line}\n`] : [])).join('')
  return {
    output: () => ({ stdout: textOf('stdout'), stderr: textOf('stderr') }),
    lastLines: () =>
      lines
        .slice(-lastLinesMax)
        .map(({ line }) => line)
        .join('\n'),
    /** Calls `onFound` with the nth line that matches, now or when it is written. */
    find(matches: (line: string) => boolean, nth: number, onFound: (line: string) => void): void {
      let left = nth
      const look = (line: string) => {
        if (left === 0 || !matches(line) || --left > 0) return
        listeners.delete(look)
        onFound(line)
      }
      for (const { line } of lines) look(line)
      if (left > 0) listeners.add(look)
    },
  }
}
