import type { Database } from '../database.ts'
import { type KeptRecord, keepRecords } from '../ledger/keepRecords.ts'
import { type KeyOnFailure, lockLines, releaseHeads } from '../ledger/keyLine.ts'

/**
 * Takes records into the ledger whose rows say that they were taken and that it does not know. Waits for whoever captures.
 * In a transaction. Safe to do twice: what the ledger knows by then stays as it is.
 */
export async function recoverRecords(
  db: Database,
  records: readonly KeptRecord[],
  { who, keyOnFailure }: { who: string; keyOnFailure: KeyOnFailure },
): Promise<void> {
  await db.query('select pg_advisory_xact_lock(7161)')
  const keys = records.flatMap(({ key }) => (key === null ? [] : [key]))
  if (keys.length > 0) await lockLines(db, keys)
  await keepRecords(db, records, who, 'recovered')
  if (keys.length > 0) await releaseHeads(db, keys, keyOnFailure)
}
