import { randomUUID } from 'node:crypto'
import type { CapturedRecord } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'
import { insertCaptured } from '../capture.ts'
import { inLines, type KeyOnFailure } from '../keyOrder.ts'
import type { Queue } from '../queue.ts'
import { lockTransactionIds, nameOf, readHolders } from '../transactions.ts'
import type { Actor } from './operator.ts'
import { rowNamesAnothers } from './recoverDoubtful.ts'
import { pollsOf, resolveArrived } from './resolveSubmission.ts'

/** A record that the ledger has lost. */
export interface LostRecord extends CapturedRecord {
  /** The transaction that its row names, so that the service has it; null where it names none. */
  transactionId: string | null
}

/**
 * Takes records into the ledger whose rows say that they were taken and that it does not know. Waits for whoever captures.
 * In a transaction. Safe to do twice: what the ledger knows by then stays as it is.
 *
 * Where its row names a transaction it is tracked on by that, or uncertain where another record has it. One that does not map any more
 * stays rejected, and is marked as one that may have arrived.
 */
export async function recoverRecords(
  db: Database,
  records: readonly LostRecord[],
  { queue, actor, keyOnFailure }: { queue: Pick<Queue, 'insert'>; actor: Actor; keyOnFailure: KeyOnFailure },
): Promise<void> {
  await db.query('select pg_advisory_xact_lock(7161)')
  const named = records.flatMap(({ id, outboxId, resource, transactionId, error }) =>
    resource === null || transactionId === null || error !== null ? [] : [{ id, outboxId, resource, transactionId }],
  )
  await lockTransactionIds(db, named)
  const owners = new Map((await readHolders(db, named)).map((holder) => [nameOf(holder), holder.outboxId]))
  const doubts = new Map<string, string>()
  for (const transaction of named) {
    const { id, outboxId, transactionId } = transaction
    const owner = owners.get(nameOf(transaction))
    if (owner === undefined) owners.set(nameOf(transaction), outboxId)
    else doubts.set(id, `the ledger had lost this row; ${rowNamesAnothers(transactionId, owner)}: it may have arrived`)
  }
  await inLines(db, records, keyOnFailure, async () => {
    const kept = records.map((record) => ({ ...record, doubt: doubts.get(record.id) ?? record.doubt ?? null }))
    await insertCaptured(db, kept, actor.who, actor)
    const arrived = await resolveArrived(
      db,
      named.flatMap(({ id, transactionId }) =>
        doubts.has(id) ? [] : [{ id, revision: 0, transactionId, jobId: randomUUID() }],
      ),
      { how: 'recovered', actor },
    )
    await queue.insert(db, pollsOf(arrived))
    await db.query(
      `update outboxd.submission set may_have_arrived = true where id = any($1::uuid[]) and state = 'rejected'`,
      [records.flatMap(({ id, transactionId }) => (transactionId === null ? [] : [id]))],
    )
  })
}
