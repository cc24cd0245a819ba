import { newLedgerAdvice, OutboxMismatch } from '../ledger/binding.ts'
import type { Database } from '../postgres/database.ts'
import { literalSql } from './columns.ts'
import type { OpenTable } from './openTable.ts'
import type { StablePosition } from './stablePosition.ts'

/*
 * The position of an append-only table: the ledger has all rows up to this number of the sequence, and no transaction
 * can commit another one there. The position never goes back, so no row that it has passed is sent again, even after
 * the record was deleted.
 */

/** Moves the position to $1, or to just before the first row that is not captured. $2 is the sequence's file. */
export const advancePositionSql = ({ rows: { from, uncaptured, number } }: OpenTable): string =>
  `insert into outboxd.outbox_cursor as c (position, sequence_file)
   select coalesce((select ${number} - 1 from ${from} where ${uncaptured} and ${number} <= $1::bigint order by ${number} limit 1), $1::bigint), $2
   on conflict (is_only) do update set position = greatest(c.position, excluded.position), sequence_file = excluded.sequence_file
   where c.position is null or excluded.position > c.position or c.sequence_file is null`

/** Finds out whether a row waits. If the sequence was set back, new rows lie behind the position. */
export function anyRowOrSetBackSql({ shape, table, rows: { from, uncaptured } }: OpenTable): string {
  const own = `pg_get_serial_sequence(${literalSql(shape.qualified)}, ${literalSql(table.sequence ?? table.id)})::regclass`
  return `select where exists (select from ${from} where ${uncaptured}) or exists (
    select from outboxd.outbox_cursor c
    where pg_sequence_last_value(${own}) < c.position or pg_relation_filenode(${own})::text <> c.sequence_file)`
}

/** Null unless the table is append-only. @throws OutboxMismatch if the sequence's numbers started again */
export async function readStablePosition(db: Database, table: OpenTable): Promise<StablePosition | null> {
  if (table.stablePosition === null) return null
  const stable = await table.stablePosition.read()
  const { rows } = await db.query<{ position: string | null; sequenceFile: string | null }>(
    'select position::text, sequence_file as "sequenceFile" from outboxd.outbox_cursor',
  )
  const [stored] = rows
  if (stored !== undefined) assertSequenceWentOn(table.name, stored, stable)
  return stable
}

/** Call this in the transaction that captures, after the records are inserted. */
export async function advancePosition(
  db: Database,
  table: OpenTable,
  { upTo, sequenceFile }: StablePosition,
): Promise<void> {
  if (upTo !== null) await db.query(advancePositionSql(table), [upTo, sequenceFile])
}

function assertSequenceWentOn(
  name: string,
  stored: { position: string | null; sequenceFile: string | null },
  now: StablePosition,
): void {
  const { position } = stored
  if (position === null) return
  if (now.drawn !== null && BigInt(position) > BigInt(now.drawn))
    throw new OutboxMismatch(
      `the ids of the outbox ${name} started again: the table has been read up to number ${position}, and its sequence stands at ${now.drawn}`,
      `If the rows are the same, set the sequence to ${position} or above (setval). ${newLedgerAdvice}`,
    )
  if (stored.sequenceFile === null || stored.sequenceFile === now.sequenceFile) return
  throw new OutboxMismatch(
    `the sequence of the outbox ${name} was restarted or altered since the table was read up to number ${position}`,
    `If the rows are the same, run \`outboxd adopt --same\`. ${newLedgerAdvice}`,
  )
}
