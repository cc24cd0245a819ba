import { setTimeout as after } from 'node:timers/promises'
import { setClockBack } from '../../test/support/setClock.ts'
import type { Environment } from './environment.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'

/** Faults of the ledger's server, besides crashes. */
export interface LedgerFaults {
  /** Lets every COMMIT hang for a while, as if it waited for an absent standby. Resolves when that is over. */
  hangCommits(random: SeededRandom): Promise<void>
  /** Sets the database's clock back. */
  setClockBack(random: SeededRandom): Promise<void>
  clear(): Promise<void>
}

const shortMs = [500, 5_000] as const
/** Longer than a statement of ours may last (25 s). */
const longMs = [26_000, 29_000] as const
const longShare = 0.12
const backMinutesMax = 60

export function createLedgerFaults({ cluster, ledger }: Environment): LedgerFaults {
  const waitFor = async (name: string) => {
    const { run } = cluster.primary()
    await run(`alter system set synchronous_standby_names = '${name}'`)
    await run('select pg_reload_conf()')
  }
  const waitForStandby = () => persistently(() => waitFor('*'))
  return {
    async hangCommits(random) {
      const [leastMs, mostMs] = random.chance(longShare) ? longMs : shortMs
      const ms = random.whole(leastMs, mostMs)
      await waitFor('away').catch(() => {})
      await after(ms)
      await waitForStandby()
    },
    async setClockBack(random) {
      const ms = random.whole(1, backMinutesMax) * 60_000
      await retryPatiently(() => setClockBack(ledger, ms))
    },
    clear: waitForStandby,
  }
}

/** Tries again while the server restarts, because a fault that stays on would end the campaign. */
async function persistently(work: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === 100) throw error
      await after(200)
    }
  }
}
