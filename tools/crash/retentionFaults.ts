import type { Environment } from './environment.ts'
import { runAndPerhapsKill } from './operator.ts'
import type { ProgramCopy } from './programCopy.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'

/** Months go by for some records: the daemons empty and delete them, as does `outboxd prune`, and the ERP meets their rows again. */
export interface RetentionFaults {
  /** Some that have ended did so long ago. @returns how many */
  age(random: SeededRandom): Promise<number>
  /** `outboxd prune`, killed in the middle or not. */
  prune(random: SeededRandom): Promise<void>
  /** The ERP has rows say again that they wait, of records that have ended and may have been pruned. @returns how many */
  setBack(random: SeededRandom): Promise<number>
}

/** Past RETENTION_PAYLOAD_DAYS, or past RETENTION_DAYS, by as much as the clock may be set back and more. */
const agedDays = [32, 95] as const
const agedShare = 0.1
const setBackMost = 6

export function createRetentionFaults(program: ProgramCopy, { env, ledger, outbox }: Environment): RetentionFaults {
  return {
    async age(random) {
      const { rowCount } = await retryPatiently(() =>
        ledger.query(
          `update outboxd.submission set ended_at = ended_at - $1 * interval '1 day'
           where state in ('completed', 'discarded') and not report_due and random() < $2`,
          [random.pick(agedDays), agedShare],
        ),
      )
      return rowCount ?? 0
    },
    async prune(random) {
      await runAndPerhapsKill(program.start(['prune', '--as', 'crash', '--reason', 'crash campaign'], env), random)
    },
    async setBack() {
      const { rowCount } = await retryPatiently(() =>
        outbox.query(
          `update outbox set status = 'new' where id in (
             select id from outbox where status in ('completed', 'discarded') order by random() limit ${setBackMost})`,
        ),
      )
      return rowCount ?? 0
    },
  }
}
