import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import { compileCache } from './compileCache.ts'

/** `node src/main.ts …` as a process of its own, killed at the end of the test at the latest. */
export interface Program {
  /** Waits for a line of its standard output. @throws Error with what it wrote, when it ends before */
  line(isIt: (line: string) => boolean): Promise<string>
  signal(signal: NodeJS.Signals): void
  /** @returns the exit code */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** Waits for its end. */
  ended(): Promise<{ code: number | null; stdout: string; stderr: string }>
}

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

export function startProgram(args: readonly string[], env: Record<string, string>): Program {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: join(main, '..', '..'),
    env: { PATH: process.env.PATH, ...compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const exited = once(child, 'close')
  const lines: string[] = []
  let stderr = ''
  const stdout = createInterface({ input: child.stdout })
  stdout.on('line', (line) => lines.push(line))
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk
  })

  return {
    line(isIt) {
      return new Promise((resolve, reject) => {
        const found = lines.find(isIt)
        if (found) return resolve(found)
        stdout.on('line', (line) => isIt(line) && resolve(line))
        void exited.then(() => reject(new Error(`${args.join(' ')} ended: ${[...lines, stderr].join('\n')}`)))
      })
    },
    signal(signal) {
      child.kill(signal)
    },
    async stop(signal = 'SIGTERM') {
      child.kill(signal)
      await exited
      return child.exitCode
    },
    async ended() {
      await exited
      return { code: child.exitCode, stdout: lines.join('\n'), stderr }
    },
  }
}
