import type { Amounts, State } from '../../model.ts'
import { type Database, inTransaction } from '../../postgres/database.ts'
import { type Actor, logAct, type Operator } from '../operator/operator.ts'
import { hasKey } from '../operator/selectSubmissions.ts'
import { mayGo } from '../retention.ts'

/** A record of a key whose data is to be erased, as it was read. */
export interface KeyRecord {
  id: string
  outboxId: string
  type: string
  state: State
  revision: number
  /** Its row is yet to be told how it ended. */
  reportDue: boolean
  /** It has come to an end for good: nothing of it is needed any more. */
  mayBeErased: boolean
}

/** More of one key are for the next call. */
export const eraseMax = 100_000

/** The records of a key; of those that were erased no key is known any more. */
export async function readRecordsOfKey(db: Database, key: string): Promise<KeyRecord[]> {
  const { rows } = await db.query<KeyRecord>(
    `select s.id, s.outbox_id as "outboxId", s.type, s.state, s.revision, s.report_due as "reportDue",
       (${mayGo}) as "mayBeErased"
     from outboxd.submission s where ${hasKey('$1')} order by s.seq limit ${eraseMax}`,
    [key],
  )
  return rows
}

/** What a record was made of, where its log does not have its amounts. */
export interface UnkeptAmounts {
  id: string
  type: string
  payload: string
  body: string
}

/** Those of these records whose amounts stand in their contents alone: captured before the log kept them. */
export async function readUnkeptAmounts(db: Database, ids: readonly string[]): Promise<UnkeptAmounts[]> {
  const { rows } = await db.query<UnkeptAmounts>(
    `select id, type, payload, body from outboxd.submission s
     where id = any($1::uuid[]) and payload is not null and body is not null and not exists (
       select from outboxd.submission_event e where e.submission_id = s.id and e.amounts is not null)`,
    [ids],
  )
  return rows
}

/** A record to erase, with its amounts where the log does not have them. */
export interface Erasure {
  id: string
  revision: number
  amounts: Amounts | null
}

/**
 * Erases what may be a person's data: key, payload, body, result, error, and of the events what was noted beside the step. Times, states, ids,
 * amounts and the events' digests stay; so the logs' chain does. Beside daemons, which are done with these.
 *
 * @returns the ids of those that were erased; the others took a step since they were read
 */
export function eraseRecords({ ledger, actor }: Operator, erasures: readonly Erasure[]): Promise<string[]> {
  return inTransaction(ledger, (db) => erase(db, erasures, actor))
}

async function erase(db: Database, erasures: readonly Erasure[], actor: Actor): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `with due as (
       select s.id from outboxd.submission s join unnest($1::uuid[], $2::int[]) r(id, revision) using (id)
       where s.revision = r.revision and ${mayGo} and s.erased_at is null order by s.id for update of s
     )
     update outboxd.submission s set key = null, payload = null, body = null, result = null, error = null,
       emptied_at = coalesce(emptied_at, clock_timestamp()), erased_at = clock_timestamp()
     from due where s.id = due.id returning s.id`,
    [erasures.map(({ id }) => id), erasures.map(({ revision }) => revision)],
  )
  const ids = rows.map(({ id }) => id)
  if (ids.length === 0) return []
  // A statement of its own: the log allows it where it sees that the submission is erased, and keeps the digests of what goes.
  await db.query(
    `update outboxd.submission_event set cause = outboxd.kept_cause(who, cause), detail = null
     where submission_id = any($1::uuid[])`,
    [ids],
  )
  const amounts = erasures.flatMap((each) =>
    each.amounts === null || !ids.includes(each.id) ? [] : [[each.id, each.amounts]],
  )
  await logAct(db, actor, 'erase', { submissions: ids, amounts: Object.fromEntries(amounts) })
  return ids
}
