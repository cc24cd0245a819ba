import { setTimeout as after } from 'node:timers/promises'
import { backUpLedger, restoreLedger } from '../../test/support/ledgerBackup.ts'
import { setClockBack } from '../../test/support/setClock.ts'
import type { Environment } from './environment.ts'
import type { LostSpan } from './history.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'

const shortHangMs = [500, 5_000] as const
/** Longer than a statement of ours may last (25 s). */
const longHangMs = [26_000, 29_000] as const
const longShare = 0.12
const clockBackMinutesMax = 60
const awaitedWithinMs = 5_000
const backMs = [500, 8_000] as const
/** Until then, a request whose claim was lost may still leave, because its deadline passes after 3 s. */
const stillLeavesMs = 5_000

/** Hanging COMMITs, a clock that is set back, failovers, and restores of the ledger. */
export class ServerFaults {
  readonly #environment: Environment
  /** Time spans whose commits were lost. */
  readonly lost: LostSpan[] = []

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** Lets every COMMIT hang for a while, as if it waited for an absent standby. Resolves when that is over. */
  async hangCommits(random: SeededRandom): Promise<void> {
    const [leastMs, mostMs] = random.chance(longShare) ? longHangMs : shortHangMs
    const ms = random.whole(leastMs, mostMs)
    await this.#waitFor('away').catch(() => {})
    await after(ms)
    await this.clear()
  }

  /** Lets COMMITs wait for the standby only. */
  clear(): Promise<void> {
    return retryPatiently(() => this.#waitFor('*'))
  }

  async #waitFor(standby: string): Promise<void> {
    const { run } = this.#environment.cluster.primary()
    await run(`alter system set synchronous_standby_names = '${standby}'`)
    await run('select pg_reload_conf()')
  }

  async setClockBack(random: SeededRandom): Promise<void> {
    const ms = random.whole(1, clockBackMinutesMax) * 60_000
    await retryPatiently(() => setClockBack(this.#environment.database, ms))
  }

  /** Kills the primary with SIGKILL and promotes its standby. @returns 0 if the standby may lack claims, otherwise 1 */
  failOver(): Promise<number> {
    const { cluster } = this.#environment
    return cluster.alone(async () => {
      const untilMs = performance.now() + awaitedWithinMs
      while (!(await cluster.isAwaited().catch(() => false))) {
        if (performance.now() > untilMs) return 0
        await after(100)
      }
      await cluster.promote()
      await cluster.follow()
      return 1
    })
  }

  /** Restores the ledger's rows of some seconds ago, but not the outbox. */
  async restore(random: SeededRandom): Promise<void> {
    const { cluster, database } = this.#environment
    const fromUs = Date.now() * 1000
    const backup = await retryPatiently(() => backUpLedger(database))
    await after(random.whole(...backMs))
    // Each try is one transaction. It may meet a restart of the server.
    await cluster.alone(() => retryPatiently(() => restoreLedger(database, backup)))
    this.lost.push({ fromUs, untilUs: (Date.now() + stillLeavesMs) * 1000 })
  }
}
