import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** One place in the fleet: a daemon, and the next one when it has died. */
export interface Berth {
  readonly number: number
  /** Has said that it is running, and is not stopped. */
  atWork(): boolean
  /** kill -9. */
  kill(): void
  /** SIGSTOP for so long, then SIGCONT, unless it was killed before. @returns when it goes on, or is dead */
  stopFor(ms: number): Promise<void>
}

export interface Fleet {
  readonly berths: readonly Berth[]
  /** Daemons that ended though nobody killed them, with their last words. */
  readonly deserters: string[]
  /** Starts that found no database. */
  readonly failedStarts: () => number
  /** SIGTERM to all. @returns their exit codes */
  terminate(): Promise<(number | null)[]>
  /** kill -9 to all that are left. */
  scuttle(): void
}

const restartMs = 200
const lastLinesMost = 40

/** Starts daemons and starts each anew whenever it ends, as a service manager would. */
export function launchFleet(options: { main: string; dir: string; env: Record<string, string>; size: number }): Fleet {
  const deserters: string[] = []
  let failedStarts = 0
  let recalled = false
  const children = new Map<number, ChildProcess>()
  const berths = Array.from({ length: options.size }, (_, number) => man(number))

  function man(number: number): Berth {
    let child: ChildProcess
    let running = false
    let stopped = false
    let killed = false

    function launch(): void {
      child = spawn(process.execPath, [options.main, 'run'], {
        cwd: options.dir,
        env: options.env,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      children.set(number, child)
      running = false
      stopped = false
      killed = false
      const lastLines: string[] = []
      for (const stream of [child.stdout, child.stderr]) {
        if (!stream) continue
        createInterface({ input: stream }).on('line', (line) => {
          if (line.includes('"event":"running"')) running = true
          lastLines.push(line)
          if (lastLines.length > lastLinesMost) lastLines.shift()
        })
      }
      child.on('exit', (code, signal) => {
        if (recalled) return
        if (!killed && running) deserters.push(`berth ${number}: ${code ?? signal}\n${lastLines.join('\n')}`)
        if (!killed && !running) failedStarts += 1
        setTimeout(launch, restartMs)
      })
    }

    launch()
    return {
      number,
      atWork: () => running && !stopped && !killed,
      kill() {
        killed = true
        child.kill('SIGKILL')
      },
      async stopFor(ms) {
        const victim = child
        stopped = true
        victim.kill('SIGSTOP')
        await Promise.race([new Promise((resolve) => setTimeout(resolve, ms)), once(victim, 'exit')])
        if (victim !== child) return
        victim.kill('SIGCONT')
        stopped = false
      },
    }
  }

  const alive = () => [...children.values()].filter((child) => child.exitCode === null && child.signalCode === null)
  return {
    berths,
    deserters,
    failedStarts: () => failedStarts,
    terminate() {
      recalled = true
      return Promise.all(
        alive().map(async (child) => {
          const exited = once(child, 'exit')
          child.kill('SIGTERM')
          const [code] = await exited
          return code as number | null
        }),
      )
    },
    scuttle() {
      recalled = true
      for (const child of alive()) child.kill('SIGKILL')
    },
  }
}
