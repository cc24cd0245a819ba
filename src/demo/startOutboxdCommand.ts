import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Reaper } from '../embedded/reaper.ts'
import { programFile } from '../packageFolder.ts'

export interface RunningCommand {
  /** The first value of `CommandSpec.field` in a line of JSON. */
  readonly announcedValue: Promise<string>
  /** Resolves when the command ends with exit code 0. Otherwise rejects with its last output. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

export interface CommandSpec {
  args: readonly [string, ...string[]]
  /** Secrets go here, not into `args`. */
  env: Record<string, string>
  folder: string
  reaper: Reaper
  announcedField?: string
  onStdoutLine?: (line: string) => void
}

const lastLinesMax = 5
const patienceMs = 8_000

export function startOutboxdCommand({
  args,
  env,
  folder,
  reaper,
  announcedField,
  onStdoutLine,
}: CommandSpec): RunningCommand {
  const [name] = args
  const child = spawn(process.execPath, [programFile, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const pid = child.pid ?? 0
  if (pid !== 0) reaper.addProcess(pid, 'SIGKILL')
  const log = createWriteStream(join(folder, `${name}.log`))
  log.on('error', () => {}) // the folder may be gone already
  const lines: string[] = []
  const announced = Promise.withResolvers<string>()
  const ended = Promise.withResolvers<void>()
  for (const { promise } of [announced, ended]) promise.catch(() => {}) // avoids an unhandled rejection
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      log.write(`${line}\n`)
      lines.push(line)
      if (lines.length > lastLinesMax) lines.shift()
      if (stream === child.stdout) onStdoutLine?.(line)
      const value = announcedField === undefined ? undefined : valueIn(line, announcedField)
      if (value !== undefined) announced.resolve(value)
    })
  }
  child.once('error', (error) => lines.push(error.message))
  child.once('close', (exitCode) => {
    reaper.removeProcess(pid)
    log.end()
    const how = exitCode === null ? 'killed' : `exit code ${exitCode}`
    const error = new Error(`outboxd ${name} ended (${how}): ${lines.join('\n')}`)
    announced.reject(error)
    if (exitCode === 0) ended.resolve()
    else ended.reject(error)
  })
  return {
    announcedValue: announced.promise,
    ended: ended.promise,
    async stop() {
      child.kill('SIGTERM')
      const impatience = setTimeout(() => child.kill('SIGKILL'), patienceMs)
      await ended.promise.catch(() => {})
      clearTimeout(impatience)
    },
  }
}

function valueIn(line: string, field: string): string | undefined {
  try {
    const value = (JSON.parse(line) as Record<string, unknown>)[field]
    return value === undefined ? undefined : String(value)
  } catch {
    return undefined
  }
}
