import { newLedgerAdvice, OutboxMismatch } from '../ledger/binding.ts'
import type { Database } from '../postgres/database.ts'
import { isInvalidValueError } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'

const idSampleMax = 100

/**
 * Refuses a table whose id column's new type writes captured ids differently: if rows are not marked on capture, all of
 * them would count as new.
 *
 * @throws OutboxMismatch
 */
export async function assertIdsAreComparable(ledger: Database, table: OpenTable): Promise<void> {
  if (table.form === 'marked' || table.areIdsComparable) return
  const { idType, exactIdType } = table.rows
  const { rows: captured } = await ledger.query<{ id: string }>(
    'select outbox_id as id from outboxd.submission order by submission.id desc limit $1',
    [idSampleMax],
  )
  const ids = captured.map(({ id }) => id)
  const change = await findChange(table, idType, exactIdType, ids)
  if (change !== null)
    throw new OutboxMismatch(
      table.name,
      `the column now writes ids of the outbox ${table.name} differently (${change}), so captured rows would be sent again`,
      `Give the column its former type. ${newLedgerAdvice}`,
    )
  table.areIdsComparable = true
}

async function findChange(
  { db }: OpenTable,
  idType: string,
  exactIdType: string,
  ids: readonly string[],
): Promise<string | null> {
  try {
    const { rows } = await db.query<{ change: string }>(
      `select was || ' as ' || id::${exactIdType}::text as change from unnest($1::${idType}[], $2::text[]) as captured(id, was)
       where id::${exactIdType}::text <> was collate "C" limit 1`,
      [ids, ids],
    )
    return rows[0]?.change ?? null
  } catch (error) {
    if (isInvalidValueError(error)) return 'some do not fit its type'
    throw error
  }
}
