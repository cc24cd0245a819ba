import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { extname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Reaper } from '../embedded/reaper.ts'

export interface RunningCommand {
  /**
   * The first result of `announced`.
   * @throws CommandEnded if the command ended before
   */
  readonly announced: Promise<string>
  /** Resolves to its exit code; null if a signal ended it. */
  readonly ended: Promise<number | null>
  lastMessage(): string
  stop(): Promise<void>
}

export interface CommandSpec {
  args: readonly [string, ...string[]]
  /** Secrets go here, not into `args`. */
  env: Record<string, string>
  folder: string
  reaper: Reaper
  /** Returns undefined for a line of stdout that `announced` does not need. */
  onLine?: (line: string) => string | undefined
}

export class CommandEnded extends Error {
  override name = 'CommandEnded'
  constructor(name: string, exitCode: number | null, lastMessage: string) {
    super(`outboxd ${name} ended (${exitCode === null ? 'killed' : `exit code ${exitCode}`}): ${lastMessage}`)
  }
}

export const mainFile = join(import.meta.dirname, '..', `main${extname(import.meta.filename)}`)

const lastLinesMax = 5
const patienceMs = 8_000

export function startCommand({ args, env, folder, reaper, onLine }: CommandSpec): RunningCommand {
  const [name] = args
  const child = spawn(process.execPath, [mainFile, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const { pid } = child
  if (pid !== undefined) reaper.addProcess(pid, 'SIGKILL')
  const log = createWriteStream(join(folder, `${name}.log`))
  log.on('error', () => {}) // the folder may be gone already
  const lines: string[] = []
  const { promise: announced, resolve, reject } = Promise.withResolvers<string>()
  announced.catch(() => {}) // avoids an unhandled rejection

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
