import type { CapturedRecord } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'
import { insertCaptured } from '../insertCaptured.ts'
import { inLines, type KeyOnFailure } from '../keyOrder.ts'
import type { Actor } from './acts.ts'

/**
 * Takes records into the ledger whose rows say that they were taken and that it does not know. Waits for whoever captures.
 * In a transaction. Safe to do twice: what the ledger knows by then stays as it is.
 */
export async function recoverRecords(
  db: Database,
  records: readonly CapturedRecord[],
  { actor, keyOnFailure }: { actor: Actor; keyOnFailure: KeyOnFailure },
): Promise<void> {
  await db.query('select pg_advisory_xact_lock(7161)')
  await inLines(db, records, keyOnFailure, () => insertCaptured(db, records, actor.who, actor))
}
