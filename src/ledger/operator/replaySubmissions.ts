import { randomUUID } from 'node:crypto'
import type { Amounts } from '../../model/outbox.ts'
import type { State } from '../../model/submission.ts'
import type { Database } from '../../postgres/database.ts'
import type { Resource } from '../../resources.ts'
import { readCurrency } from '../audit/currency.ts'
import { computeRequestDigest, type NewerVersion, newerVersionIdSql, newerVersionSql } from '../documents.ts'
import { lockSettings } from '../settings.ts'
import { resetColumnsByLifetimeSql } from '../submissions.ts'
import { decisionSql, withSubmissionsLocked, writeDecisions } from './decisions.ts'
import type { Operator } from './operator.ts'

export interface ReplayableSubmission {
  id: string
  outboxId: string
  type: string
  key: string | null
  /** Null if the payload could not be read at the capture, or was emptied. */
  payload: string | null
  isErased: boolean
  state: State
  revision: number
  /** The row's creation time as the table writes it. */
  created: string | null
  /** True if the record is a version of a document. */
  isVersion: boolean
  mayHaveArrived: boolean
  /** True if a later version took its place, even one that was not sent because it was equal to one before. */
  isSuperseded: boolean
  /** The newest later version of its document. */
  newer: NewerVersion | null
}

export interface Replay {
  id: string
  revision: number
  /** From the ledger, or from the row if the row was read again. */
  type: string
  key: string | null
  resource: Resource
  payload: string
  body: string
  amounts: Amounts
  tracked: boolean
  sendsOwnId: boolean
}

/** Leaves out submissions that took a step since the operator saw them. */
export async function readReplayableSubmissions(
  db: Database,
  seen: readonly { id: string; revision: number }[],
): Promise<ReplayableSubmission[]> {
  const { rows } = await db.query<ReplayableSubmission>(
    `select s.id, s.outbox_id as "outboxId", s.type, s.key, s.payload, s.state, s.revision,
       s.row_created as created, s.erased_at is not null as "isErased",
       s.document is not null as "isVersion", s.may_have_arrived as "mayHaveArrived", ${newerVersionSql()} as newer,
       coalesce(s.state = 'discarded' and (select e.cause from outboxd.submission_event e where e.submission_id = s.id
         order by e.id desc limit 1) = 'superseded', false) as "isSuperseded"
     from outboxd.submission s join unnest($1::uuid[], $2::int[]) r(id, revision) using (id)
     where s.state in ('failed', 'rejected', 'discarded') and s.revision = r.revision order by s.seq`,
    [seen.map((each) => each.id), seen.map((each) => each.revision)],
  )
  return rows
}

/**
 * Queues failed, rejected and discarded submissions again. Their `seq`, attempts and log stay.
 * Of a document only the newest version is queued.
 *
 * The idempotency key is new if the service has answered under the former key. Unless the operator wants new keys, a
 * record that may have arrived keeps its key: a service that recognises keys then has it once. The record stays in
 * doubt, so that E002 is read as "it arrived".
 *
 * @param assertFiles throws if the daemons have other mapping files by now than those that made the replays
 */
export async function queueReplays(
  operator: Operator,
  replays: readonly Replay[],
  shouldUseNewKeys: boolean,
  assertFiles: (db: Database) => Promise<void> = async () => {},
): Promise<string[]> {
  const records = replays.map((replay) => ({
    ...replay,
    newKeys: shouldUseNewKeys,
    idempotencyKey: randomUUID(),
    requestDigest: computeRequestDigest(replay),
    currency: readCurrency(replay.body, replay.amounts),
  }))
  const replayed = await withSubmissionsLocked(operator, replays, async (db) => {
    await lockSettings(db)
    await assertFiles(db)
    return writeDecisions(db, replaySql, records, operator.actor)
  })
  return replayed.map(({ id }) => id)
}

/**
 * True if the service may have the record under its idempotency key and has not finished it. An end under a transaction
 * id that an operator gave does not count, because the id may be another record's.
 */
export const keepsIdempotencyKeySql = (submissionAlias: string): string =>
  `((${submissionAlias}.may_have_arrived or ${submissionAlias}.state in ('sending', 'uncertain', 'accepted', 'completed')) and (${submissionAlias}.done_ms is null or ${submissionAlias}.id_by_person))`

const replaySql = decisionSql({
  fields: `type text, key text, resource text, payload text, body text, tracked boolean, "sendsOwnId" boolean,
    "newKeys" boolean, "idempotencyKey" uuid, amounts jsonb, currency text,
    "requestDigest" text`,
  allowed: `s.state in ('failed', 'rejected', 'discarded') and s.erased_at is null
    and ${newerVersionIdSql('s')} is null`,
  set: `state = 'queued', type = r.type, key = r.key, held = r.key is not null, due_at = clock_timestamp(),
    resource = r.resource, payload = r.payload, body = r.body, tracked = r.tracked, sends_own_id = r."sendsOwnId",
    request_digest = case when s.document is not null then r."requestDigest" end,
    idempotency_key = case when ${keepsIdempotencyKeySql('f')} and not r."newKeys" then s.idempotency_key else r."idempotencyKey" end,
    in_doubt = f.may_have_arrived or f.id_by_person, transaction_id = null, id_by_person = false,
    ${resetColumnsByLifetimeSql('start')}, accepted_at = null, ended_at = null,
    emptied_at = null`,
  cause: 'replayed',
  detail: `'currency', r.currency, 'former', jsonb_strip_nulls(jsonb_build_object('code', f.error_code, 'error', f.error,
    'transactionId', f.transaction_id, 'idempotencyKey', f.idempotency_key, 'body', case when f.body <> r.body then f.body end,
    'payload', case when f.payload <> r.payload then f.payload end))`,
  amounts: 'r.amounts',
})
