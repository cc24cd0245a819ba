import type { State } from '../../model.ts'
import { type Database, inTransaction } from '../../postgres/database.ts'
import { type Actor, logOperatorAct, type Operator } from '../operator/operator.ts'
import { hasKeySql } from '../operator/selectSubmissions.ts'
import { mayBePrunedSql } from '../retention.ts'

export interface KeyRecord {
  id: string
  outboxId: string
  type: string
  state: State
  revision: number
  reportDue: boolean
  mayBeErased: boolean
}

export const erasedRecordsMax = 100_000

export async function readRecordsOfKey(db: Database, key: string): Promise<KeyRecord[]> {
  const { rows } = await db.query<KeyRecord>(
    `select s.id, s.outbox_id as "outboxId", s.type, s.state, s.revision, s.report_due as "reportDue",
       (${mayBePrunedSql}) as "mayBeErased"
     from outboxd.submission s where ${hasKeySql('$1')} order by s.seq limit ${erasedRecordsMax}`,
    [key],
  )
  return rows
}

/**
 * Erases key, payload, body, result, error and the details of events. Times, states, ids, amounts and digests stay, so
 * the chain stays valid.
 */
export function eraseRecords(
  { ledger, actor }: Operator,
  records: readonly Pick<KeyRecord, 'id' | 'revision'>[],
): Promise<string[]> {
  return inTransaction(ledger, (db) => erase(db, records, actor))
}

async function erase(
  db: Database,
  records: readonly Pick<KeyRecord, 'id' | 'revision'>[],
  actor: Actor,
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `with due as (
       select s.id from outboxd.submission s join unnest($1::uuid[], $2::int[]) r(id, revision) using (id)
       where s.revision = r.revision and ${mayBePrunedSql} and s.erased_at is null order by s.id for update of s
     )
     update outboxd.submission s set key = null, payload = null, body = null, result = null, error = null, request_digest = null,
       emptied_at = coalesce(emptied_at, clock_timestamp()), erased_at = clock_timestamp()
     from due where s.id = due.id returning s.id`,
    [records.map(({ id }) => id), records.map(({ revision }) => revision)],
  )
  const ids = rows.map(({ id }) => id)
  if (ids.length === 0) return []
  // A second statement: the log's trigger allows it once the submission is erased, and keeps the digests.
  await db.query(
    `update outboxd.submission_event set cause = outboxd.kept_cause(who, cause), detail = null
     where submission_id = any($1::uuid[])`,
    [ids],
  )
  await logOperatorAct(db, actor, 'erase', { submissions: ids })
  return ids
}
