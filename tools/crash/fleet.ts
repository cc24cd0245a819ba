import { setTimeout as after } from 'node:timers/promises'
import { saysRunning } from '../../test/support/daemon.ts'
import type { Program } from '../../test/support/program.ts'
import type { ProgramCopy } from './programCopy.ts'

/** A place in the fleet for a daemon. When the daemon ends, the next one takes the place. */
interface Berth {
  readonly number: number
  /** True if the daemon has logged that it runs, and is not stopped. */
  atWork(): boolean
  /** Kills the daemon with SIGKILL. */
  kill(): void
  /** Sends SIGSTOP, and SIGCONT after `ms`. Resolves when the daemon goes on or has been killed. */
  stopFor(ms: number): Promise<void>
}

export interface Fleet {
  readonly berths: readonly Berth[]
  /** Last output of daemons that ended by themselves. */
  readonly deserters: string[]
  /** Number of starts that found no database. */
  readonly failedStarts: () => number
  /** The last lines of each running daemon's log. */
  readonly lastLines: () => string[]
  /** Sends SIGTERM to all daemons. @returns their exit codes */
  terminate(): Promise<(number | null)[]>
  /** Kills all remaining daemons with SIGKILL. */
  scuttle(): void
}

const restartMs = 200

/** Starts daemons, and restarts each daemon that ends, as a service manager would. */
export function launchFleet(options: { program: ProgramCopy; env: Record<string, string>; size: number }): Fleet {
  const deserters: string[] = []
  let failedStarts = 0
  let recalled = false
  const daemons = new Map<number, Program>()
  const berths = Array.from({ length: options.size }, (_, number) => man(number))

  function man(number: number): Berth {
    const { program } = options
    let daemon: Program
    let running = false
    let stopped = false
    let killed = false

    function launch(): void {
      if (recalled) return
      const env = { ...options.env, MAPPINGS_DIR: `${program.dir}/mappings` }
      const launched = program.start(['run'], env, (line) => {
        if (daemon === launched && saysRunning(line)) running = true
      })
      daemon = launched
      daemons.set(number, launched)
      running = false
      stopped = false
      killed = false
      void launched.ended().then(({ code, signal }) => {
        daemons.delete(number)
        if (recalled) return
        if (!killed && running) deserters.push(`berth ${number}: ${code ?? signal}\n${launched.lastLines()}`)
        if (!killed && !running) failedStarts += 1
        setTimeout(launch, restartMs)
      })
    }

    const atWork = () => running && !stopped && !killed

    launch()
    return {
      number,
      atWork,
      kill() {
        killed = true
        daemon.signal('SIGKILL')
      },
      async stopFor(ms) {
        const victim = daemon
        stopped = true
        victim.signal('SIGSTOP')
        await Promise.race([after(ms), victim.ended()])
        if (victim !== daemon) return
        victim.signal('SIGCONT')
        stopped = false
      },
    }
  }

  return {
    berths,
    deserters,
    failedStarts: () => failedStarts,
    lastLines: () => [...daemons].map(([number, daemon]) => `berth ${number}\n${daemon.lastLines()}`),
    terminate() {
      recalled = true
      return Promise.all(
        [...daemons.values()].map(async (daemon) => {
          daemon.signal('SIGTERM')
          return (await daemon.ended()).code
        }),
      )
    },
    scuttle() {
      recalled = true
      for (const daemon of daemons.values()) daemon.signal('SIGKILL')
    },
  }
}
