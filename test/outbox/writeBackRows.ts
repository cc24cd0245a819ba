import type { RowOutcome, RowStatus } from '../../src/model/outbox.ts'
import type { Outbox } from '../../src/outbox/outbox.ts'
import { writeBackOpeningSql, writeStatesToRows } from '../../src/outbox/writeBack.ts'
import { beginTransaction } from '../../src/postgres/database.ts'

/** Writes states back in one transaction, as the daemon does. */
export async function writeBackRows(outbox: Outbox, statuses: readonly RowStatus[]): Promise<RowOutcome[]> {
  const table = await outbox.open()
  await using transaction = await beginTransaction(table.db, { openingSql: writeBackOpeningSql })
  const outcomes = await writeStatesToRows(transaction.db, table, statuses)
  await transaction.commit()
  return outcomes
}
