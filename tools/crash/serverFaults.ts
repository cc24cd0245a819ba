import { setTimeout as after } from 'node:timers/promises'
import { backUpLedger, restoreLedger } from '../../test/support/ledgerBackup.ts'
import type { Environment } from './environment.ts'
import type { LostSpan } from './history.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'

/** Failovers of the database, and restores of the ledger. */
export interface ServerFaults {
  /** Kills the primary with SIGKILL and promotes its standby. @returns 0 if the standby may lack claims, otherwise 1 */
  failOver(): Promise<number>
  /** Restores the ledger's rows of some seconds ago, but not the outbox. */
  restore(random: SeededRandom): Promise<void>
  /** Time spans whose commits were lost. */
  readonly lost: readonly LostSpan[]
}

const awaitedWithinMs = 5_000
const backMs = [500, 8_000] as const
/** Until then, a request whose claim was lost may still leave, because its deadline passes after 3 s. */
const stillLeavesMs = 5_000

export function createServerFaults({ cluster, ledger }: Environment): ServerFaults {
  const lost: LostSpan[] = []
  return {
    lost,
    failOver: () =>
      cluster.alone(async () => {
        const untilMs = performance.now() + awaitedWithinMs
        while (!(await cluster.isAwaited().catch(() => false))) {
          if (performance.now() > untilMs) return 0
          await after(100)
        }
        await cluster.promote()
        await cluster.follow()
        return 1
      }),
    async restore(random) {
      const fromUs = Date.now() * 1000
      const backup = await retryPatiently(() => backUpLedger(ledger))
      await after(random.whole(...backMs))
      // Each try is one transaction. It may meet a deadlock with a daemon, or a restart of the server.
      await cluster.alone(() => retryPatiently(() => restoreLedger(ledger, backup)))
      lost.push({ fromUs, untilUs: (Date.now() + stillLeavesMs) * 1000 })
    },
  }
}
