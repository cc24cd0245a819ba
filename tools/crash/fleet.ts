import { setTimeout as after } from 'node:timers/promises'
import { saysRunning } from '../../test/support/daemon.ts'
import type { Program } from '../../test/support/program.ts'
import type { ProgramCopy } from './programCopy.ts'
import type { Statements, Strike } from './statements.ts'

/** A place in the fleet for a daemon. When the daemon ends, the next one takes the place. */
export interface Berth {
  readonly number: number
  /** True if the daemon has logged that it runs, and is not stopped. */
  atWork(): boolean
  /** Kills the daemon with SIGKILL. */
  kill(): void
  /**
   * Lets the daemon strike itself at a statement. After SIGSTOP it gets SIGCONT `stopMs` later.
   *
   * @returns true once it has done so; false if it has a plan already, ends before or takes too long. It may strike later
   */
  strikeAt(strike: Strike, stopMs?: number): Promise<boolean>
}

export interface Fleet {
  readonly berths: readonly Berth[]
  /** Last output of daemons that ended by themselves. */
  readonly deserters: string[]
  /** Number of starts that found no database. */
  readonly failedStarts: () => number
  /** The last lines of each running daemon's log. */
  readonly lastLines: () => string[]
  /** Resolves when no daemon is stopped. */
  awake(): Promise<unknown>
  /** Sends SIGTERM to all daemons. @returns their exit codes */
  terminate(): Promise<(number | null)[]>
  /** Kills all remaining daemons with SIGKILL. */
  scuttle(): void
}

export interface FleetOptions {
  program: ProgramCopy
  env: Record<string, string>
  size: number
  /** Missing if no daemon shall strike itself. */
  statements?: Statements
}

const restartMs = 200
/** A busy daemon makes all statements on a record's way within a second. */
const struckWithinMs = 4_000

/** Starts daemons, and restarts each daemon that ends, as a service manager would. */
export function launchFleet(options: FleetOptions): Fleet {
  const deserters: string[] = []
  let failedStarts = 0
  let recalled = false
  const daemons = new Map<number, Program>()
  const stops = new Set<Promise<void>>()
  const berths = Array.from({ length: options.size }, (_, number) => man(number))

  function man(number: number): Berth {
    const { program } = options
    let daemon: Program
    let running = false
    let stopped = false
    let killed = false
    let isPlanned = false
    let stopForMs = 0
    let onStruck = () => {}

    function launch(): void {
      if (recalled) return
      const env = { ...options.env, ...options.statements?.env, MAPPINGS_DIR: `${program.dir}/mappings` }
      const launched = program.start(['run'], env, (line) => {
        if (daemon !== launched) return
        if (saysRunning(line)) running = true
        if (line.startsWith('struck by SIGKILL')) killed = true
        if (line.startsWith('struck by SIGSTOP')) {
          stopped = true
          const stop = resume(launched).finally(() => stops.delete(stop))
          stops.add(stop)
        }
        if (line.startsWith('struck by')) onStruck()
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

    async function resume(victim: Program): Promise<void> {
      await Promise.race([after(stopForMs), victim.ended()])
      if (victim !== daemon) return
      victim.signal('SIGCONT')
      stopped = false
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
      async strikeAt(strike, stopMs = 0) {
        if (options.statements === undefined) throw new Error('the daemons were started without `statements`')
        if (isPlanned) return false
        isPlanned = true
        const victim = daemon
        stopForMs = stopMs
        const struck = new Promise<boolean>((resolve) => {
          onStruck = () => resolve(true)
        })
        await options.statements.plan(victim.pid, strike)
        victim.signal('SIGUSR2')
        const ended = victim.ended().then(() => false)
        const isStruck = await Promise.race([struck, ended, after(struckWithinMs, false)])
        isPlanned = false
        return isStruck
      },
    }
  }

  return {
    berths,
    deserters,
    failedStarts: () => failedStarts,
    lastLines: () => [...daemons].map(([number, daemon]) => `berth ${number}\n${daemon.lastLines()}`),
    awake: () => Promise.all(stops),
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
