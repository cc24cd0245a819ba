import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { compileCache } from '../../support/compileCache.ts'
import { until } from '../../support/until.ts'

/** `outboxd run` as a process of its own, to be killed and stopped. */
export interface DaemonProcess extends AsyncDisposable {
  signal(name: NodeJS.Signals): void
  /** Waits until it has said so once more. @returns the log line */
  says(event: string, limitMs: number): Promise<Record<string, unknown>>
  /** @returns exit code, or the signal that ended it */
  ended(): Promise<number | NodeJS.Signals | null>
}

const main = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts')

/** Starts one and waits until it says that it is running. @throws Error with its last words where it ends before */
export async function startDaemonProcess(env: Record<string, string>): Promise<DaemonProcess> {
  const child: ChildProcess = spawn(process.execPath, [main, 'run'], {
    env: { PATH: process.env.PATH, ...compileCache, NODE_ENV: 'production', ...env, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals | null)
  const lines: string[] = []
  const heard = new Map<string, number>()
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (!stream) continue
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line)
        if (line.includes('"event":"running"')) resolve()
      })
    }
    void exited.then((how) => reject(new Error(`the daemon ended with ${how}: ${lines.join('\n')}`)))
  })
  return {
    signal: (name) => void child.kill(name),
    async says(event, limitMs) {
      const seen = heard.get(event) ?? 0
      const line = await until(
        () => Promise.resolve(lines.filter((each) => each.includes(event))[seen]),
        (found) => found !== undefined,
        limitMs,
      )
      heard.set(event, seen + 1)
      return JSON.parse(line ?? '{}') as Record<string, unknown>
    },
    ended: () => exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
