import type { Database } from '../postgres/database.ts'
import { ForeignError } from './problems.ts'

export interface OutboxIdentity {
  database: string
  table: string
  idColumn: string
}

/** Older rows are not ours. */
export interface StartPosition {
  /** Rows with a lower id. */
  id: string | null
  /** Rows recorded before this ISO 8601 time. */
  at: string | null
}

/** The outbox that the ledger serves. Row ids are unique only within it. */
export interface ServedOutbox {
  epoch: number
  /** Null until a daemon has opened the table. */
  identity: OutboxIdentity | null
  start: StartPosition
  sinceMs: number
  /** True if an operator has said that the ERP edits rows after their capture. */
  rowsEdited: boolean
  /** Number of times that its rows were read again from the first one. */
  readings: number
}

/** The configuration names a different outbox, or one whose ids started again. */
export class ForeignOutbox extends ForeignError {
  override name = 'ForeignOutbox'
  constructor(outbox: string, why: string) {
    super(
      'foreign_outbox',
      outbox,
      `${why}. Nothing is captured or written back. If DATABASE_URL or OUTBOX_TABLE is wrong, correct it. If the table was renamed or moved, run \`outboxd adopt --same\`; if its rows are different or its ids started again, \`outboxd adopt --new\``,
    )
  }
}

const columns = `id as epoch,
  case when num_nulls(database_name, table_name, id_column) = 0
    then json_build_object('database', database_name, 'table', table_name, 'idColumn', id_column) end as identity,
  json_build_object('id', start_id, 'at', to_char(start_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) as start,
  extract(epoch from since)::float8 * 1000 as "sinceMs", rows_edited as "rowsEdited", readings`

export async function readServedOutbox<ExtraColumns>(
  db: Database,
  ...extraColumnsSql: readonly string[]
): Promise<ServedOutbox & ExtraColumns> {
  const { rows } = await db.query<ServedOutbox & ExtraColumns>(
    `select ${[columns, ...extraColumnsSql].join(', ')} from outboxd.outbox where is_current`,
  )
  const [row] = rows
  if (row === undefined)
    throw new Error(
      'outboxd.outbox does not say which table the ledger serves. The ledger was restored in part: restore it again',
    )
  return row
}

/** Serves this outbox, if the ledger serves none yet. Of two daemons one wins. */
export async function bindLedgerToOutbox(
  db: Database,
  { database, table, idColumn }: OutboxIdentity,
  who: string,
): Promise<void> {
  await db.query(
    `update outboxd.outbox set database_name = $1, table_name = $2, id_column = $3, said_by = $4
     where is_current and database_name is null`,
    [database, table, idColumn, who],
  )
}

export const describeOutboxIdentity = ({ database, table, idColumn }: OutboxIdentity): string =>
  `${table} of the database ${database}, by its column ${idColumn}`

/** @throws ForeignOutbox if the ledger serves a different table */
export function assertOutboxServed(served: ServedOutbox, identity: OutboxIdentity): void {
  const { identity: its } = served
  if (its === null || describeOutboxIdentity(its) === describeOutboxIdentity(identity)) return
  const named = describeOutboxIdentity(identity)
  throw new ForeignOutbox(
    named,
    `the ledger belongs to the outbox ${describeOutboxIdentity(its)}, and the configuration names ${named}`,
  )
}
