import { clearProblems, raiseProblems } from '../ledger/problems.ts'
import type { Outbox } from '../outbox/outbox.ts'
import type { Database } from '../postgres/database.ts'

/** Rows that wait behind the position up to which a table was read. */
export interface PassedOver {
  rows: number
  /** Null where there is none. */
  firstId: string | null
  /** The id from which to go on; null where the table's end was reached, or it has no position. */
  after: string | null
}

export interface PassedOverDeps {
  outbox: Pick<Outbox, 'readPassedOver'>
  /** Asked between two slices: false gives up. */
  goOn(): Promise<boolean>
  sliceRows: number
  /** Where to begin; null: at the first row. */
  after: string | null
}

/** Reads the outbox in slices, in the order of its ids, up to the first slice that has such rows. */
export async function findPassedOver({ outbox, goOn, sliceRows, after: begin }: PassedOverDeps): Promise<PassedOver> {
  let after = begin
  for (;;) {
    const slice = await outbox.readPassedOver(after, sliceRows)
    if (slice === null) return { rows: 0, firstId: null, after: null }
    const { unknown, upTo } = slice
    if (unknown.length > 0 || upTo === null) return { rows: unknown.length, firstId: unknown[0] ?? null, after: upTo }
    after = upTo
    if (!(await goOn())) return { rows: 0, firstId: null, after }
  }
}

/** In words, for the problem and for `check`; without the client's data. */
export function passedOverMessage({ rows, firstId, after }: PassedOver): string {
  const many = after === null ? `${rows}` : `${rows} or more`
  return `${many} ${rows === 1 && after === null ? 'row' : 'rows'} waited behind the position up to which the table had been read (the first is ${firstId}): rows came there that were loaded with ids or numbers of their own, or by a partition, a table that inherits, or a policy`
}

/** Other comparisons are an hour apart: this one shall soon say that it is over. */
const compareAgainMinutes = 5

/** Says so, and has all instances read the table from its beginning: what the ledger knows is passed over, the others are taken. */
export async function beginAnew(db: Database, found: PassedOver): Promise<void> {
  await raiseProblems(db, [
    { kind: 'rows_passed_over', subject: '', detail: passedOverMessage(found), retryInMs: null },
  ])
  await db.query(
    `update outboxd.outbox set readings = readings + 1,
       compared_at = clock_timestamp() - interval '1 hour' + $1 * interval '1 minute' where is_current`,
    [compareAgainMinutes],
  )
}

/** None was found: those that were told are taken. */
export const endPassedOver = (db: Database): Promise<void> => clearProblems(db, 'rows_passed_over', null)
