import { setTimeout as after } from 'node:timers/promises'
import type pg from 'pg'
import { setClockBack } from '../support/setClock.ts'
import type { SeededRandom } from './seededRandom.ts'

/** What happens to the ledger's server beside crashes. */
export interface LedgerFaults {
  /** Every COMMIT hangs for a while, as where a synchronous standby is away. @returns when that is over */
  hangCommits(random: SeededRandom): Promise<void>
  /** The database's clock is set back. */
  setClockBack(random: SeededRandom): Promise<void>
  clear(): Promise<void>
}

const shortMs = [500, 5_000] as const
/** Longer than a statement of ours may last (25 s). */
const longMs = [26_000, 29_000] as const
const longShare = 0.12
const backMinutesMax = 60

export function ledgerFaults(ledger: pg.Pool): LedgerFaults {
  const waitForStandby = async (name: string) => {
    await ledger.query(`alter system set synchronous_standby_names = '${name}'`)
    await ledger.query('select pg_reload_conf()')
  }
  return {
    async hangCommits(random) {
      const [leastMs, mostMs] = random.chance(longShare) ? longMs : shortMs
      const ms = random.whole(leastMs, mostMs)
      await waitForStandby('away').catch(() => {})
      await after(ms)
      await persistently(() => waitForStandby(''))
    },
    async setClockBack(random) {
      await setClockBack(ledger, random.whole(1, backMinutesMax) * 60_000).catch(() => {})
    },
    clear: () => persistently(() => waitForStandby('')),
  }
}

/** Tries again while the server restarts: a fault that stays on would end the campaign. */
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
