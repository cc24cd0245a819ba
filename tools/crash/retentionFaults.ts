import type { Environment } from './environment.ts'
import { runAndPerhapsKill } from './operator.ts'
import type { ProgramCopy } from './programCopy.ts'
import { retryPatiently } from './retryPatiently.ts'
import type { SeededRandom } from './seededRandom.ts'

/** Ages past RETENTION_PAYLOAD_DAYS and past RETENTION_DAYS, even if the clock is set back. */
const agedDays = [32, 95] as const
const agedShare = 0.1
const setBackMost = 6

/** Makes some records months old, so that they are pruned, and sets rows back to waiting. */
export class RetentionFaults {
  readonly #program: ProgramCopy
  readonly #environment: Environment

  constructor(program: ProgramCopy, environment: Environment) {
    this.#program = program
    this.#environment = environment
  }

  /** Makes some ended records old. @returns how many */
  async age(random: SeededRandom): Promise<number> {
    const { rowCount } = await retryPatiently(() =>
      this.#environment.database.query(
        `update outboxd.submission set ended_at = ended_at - $1 * interval '1 day'
         where state in ('completed', 'discarded') and not report_due and random() < $2`,
        [random.pick(agedDays), agedShare],
      ),
    )
    return rowCount ?? 0
  }

  /** Runs `outboxd prune`, and kills it sometimes. */
  async prune(random: SeededRandom): Promise<void> {
    const args = ['prune', '--as', 'crash', '--reason', 'crash campaign']
    await runAndPerhapsKill(this.#program.start(args, this.#environment.env), random)
  }

  /** Sets rows of ended records, which may be old, back to waiting, as an ERP may. @returns how many */
  async setBack(): Promise<number> {
    const { rowCount } = await retryPatiently(() =>
      this.#environment.database.query(
        // Only rows that still have a record, which the lock keeps until the row waits: without it, the row is sent again.
        `with chosen as (
           select o.id, s.id as record from outbox o join outboxd.submission s on s.outbox_id = o.id::text
           where o.status in ('completed', 'discarded') order by random() limit ${setBackMost}
         ), locked as (
           select chosen.id from chosen join outboxd.submission s on s.id = chosen.record for share of s
         )
         update outbox set status = 'new' where id in (select id from locked)`,
      ),
    )
    return rowCount ?? 0
  }
}
