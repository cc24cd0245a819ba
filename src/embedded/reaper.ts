import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname, join } from 'node:path'
import { minimalChildEnvironment } from './postgresServer.ts'

/** Ends processes and removes folders if this process ends without calling `done`. */
export interface Reaper {
  addProcess(pid: number, signal: NodeJS.Signals): void
  removeProcess(pid: number): void
  addFolder(path: string): void
  done(): Promise<void>
}

const program = join(import.meta.dirname, `reaperProcess${extname(import.meta.filename)}`)

/** In a separate session, a Ctrl-C in the terminal does not reach the reaper. */
export function startReaper(): Reaper {
  const reaper = spawn(process.execPath, [program], {
    ...{ detached: true, env: minimalChildEnvironment() },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = once(reaper, 'exit').catch(() => {})
  reaper.stdin.on('error', () => {}) // a killed reaper must not end this process
  const tell = (line: string) => void reaper.stdin.write(`${line}\n`)
  return {
    addProcess: (pid, signal) => tell(`process ${pid} ${signal}`),
    removeProcess: (pid) => tell(`ended ${pid}`),
    addFolder: (path) => tell(`folder ${path}`),
    async done() {
      reaper.stdin.end('done\n')
      await ended
    },
  }
}
