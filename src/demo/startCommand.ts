import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { extname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Reaper } from '../embedded/reaper.ts'

export interface RunningCommand {
  /** What `onLine` returned first. @throws CommandEnded when it ended before */
  readonly announced: Promise<string>
  /** Resolves to its exit code; null if a signal ended it. */
  readonly ended: Promise<number | null>
  lastMessage(): string
  /** SIGTERM, and SIGKILL for one that does not listen. */
  stop(): Promise<void>
}

export interface CommandSpec {
  args: readonly [string, ...string[]]
  /** Secrets come this way and not through `args`. */
  env: Record<string, string>
  /** The log NAME.log is written there. */
  folder: string
  reaper: Reaper
  /** @returns what `announced` waits for; undefined for any other line of stdout */
  onLine?: (line: string) => string | undefined
}

export class CommandEnded extends Error {
  override name = 'CommandEnded'
  constructor(name: string, exitCode: number | null, lastMessage: string) {
    super(`outboxd ${name} ended (${exitCode === null ? 'killed' : `exit code ${exitCode}`}): ${lastMessage}`)
  }
}

/** In the checkout main.ts, compiled main.js. */
export const mainFile = join(import.meta.dirname, '..', `main${extname(import.meta.filename)}`)

const lastLinesMax = 5
const patienceMs = 8_000

/** Starts a command as in production: a process, its environment, its signals. */
export function startCommand({ args, env, folder, reaper, onLine }: CommandSpec): RunningCommand {
  const [name] = args
  const child = spawn(process.execPath, [mainFile, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const { pid } = child
  if (pid !== undefined) reaper.addProcess(pid, 'SIGKILL')
  const log = createWriteStream(join(folder, `${name}.log`))
  log.on('error', () => {}) // the log is a convenience: the folder may be gone already
  const lines: string[] = []
  const { promise: announced, resolve, reject } = Promise.withResolvers<string>()
  announced.catch(() => {}) // not everyone waits for it

  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      log.write(`${line}\n`)
      lines.push(line)
      if (lines.length > lastLinesMax) lines.shift()
      const news = stream === child.stdout ? onLine?.(line) : undefined
      if (news !== undefined) resolve(news)
    })
  }
  const ended = new Promise<number | null>((settle) => {
    child.once('error', (error) => lines.push(error.message))
    child.once('close', (exitCode) => {
      if (pid !== undefined) reaper.removeProcess(pid)
      log.end()
      reject(new CommandEnded(name, exitCode, lines.join('\n')))
      settle(exitCode)
    })
  })
  return {
    announced,
    ended,
    lastMessage: () => lines.join('\n'),
    async stop() {
      child.kill('SIGTERM')
      const impatience = setTimeout(() => child.kill('SIGKILL'), patienceMs)
      await ended
      clearTimeout(impatience)
    },
  }
}
