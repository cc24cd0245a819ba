import { randomUUID } from 'node:crypto'
import { type Database, epochMsSql } from '../../postgres/database.ts'
import { newerVersionIdSql } from '../documents.ts'
import { PollQueue } from '../queue.ts'
import { readRequestOverAfterMs } from '../settings.ts'
import { resetColumnsByLifetimeSql } from '../submissions.ts'
import { readOtherTransactionHolder, type TransactionHolder, type TransactionRef } from '../transactions.ts'
import { type DecidedSubmission, decisionSql, withSubmissionsLocked, writeDecisions } from './decisions.ts'
import type { Actor, Operator, SeenRecord } from './operator.ts'
import { keepsIdempotencyKeySql } from './replaySubmissions.ts'

export type ArrivalResult =
  | { kind: 'settled'; tracked: boolean }
  | { kind: 'taken'; by: TransactionHolder }
  /** The submission took a step since, or nothing is in doubt. */
  | { kind: 'changed' }

/** The record is polled at once under the transaction's id. */
export async function resolveAsArrived(
  operator: Operator,
  seen: SeenRecord,
  transaction: TransactionRef,
): Promise<ArrivalResult> {
  await using queue = await PollQueue.open(operator.ledger)
  async function settle(db: Database): Promise<ArrivalResult> {
    const by = await readOtherTransactionHolder(db, transaction, seen.id)
    if (by) return { kind: 'taken', by }
    const arrivals = [{ id: seen.id, revision: seen.revision, transactionId: transaction.transactionId }]
    const [settled] = await settleArrivedRecords(db, queue, arrivals, { how: 'resolved', actor: operator.actor })
    return settled === undefined ? { kind: 'changed' } : { kind: 'settled', tracked: settled.tracked }
  }
  return await withSubmissionsLocked(operator, [seen], settle, [transaction])
}

/**
 * Reads the submissions whose last request may still arrive.
 * @returns until when, in milliseconds since 1970, by the submission's id
 */
export async function readArrivalsPossibleUntil(db: Database, ids: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ id: string; untilMs: number }>(
    `select s.id, ${epochMsSql(overAtSql('$2::float8'))} as "untilMs" from outboxd.submission s
     where s.id = any($1::uuid[]) and ${overAtSql('$2::float8')} > clock_timestamp()`,
    [ids, await readRequestOverAfterMs(db)],
  )
  return new Map(rows.map(({ id, untilMs }) => [id, untilMs]))
}

/** When the last request of submission `s` is over; null if there was none. A recovery forgets requests. */
const overAtSql = (overAfterMsSql: string) =>
  `greatest(s.sent_at + ${overAfterMsSql} * interval '1 ms', (select spent_at from outboxd.ledger))`

/**
 * The records are sent again. They stay in doubt and keep their idempotency keys (see `queueReplays`), because the
 * operator may be wrong.
 *
 * @returns those that are queued. Leaves out records that took a step since, that are not in doubt, that may still
 * arrive, or whose document has a newer version
 */
export function resolveAsNotArrived(
  operator: Operator,
  seen: readonly SeenRecord[],
  shouldUseNewKeys: boolean,
): Promise<Pick<DecidedSubmission, 'id' | 'keptKey'>[]> {
  return withSubmissionsLocked(operator, seen, async (db) => {
    const overAfterMs = await readRequestOverAfterMs(db)
    const records = seen.map(({ id, revision }) => ({
      id,
      revision,
      newKey: shouldUseNewKeys,
      idempotencyKey: randomUUID(),
      overAfterMs,
    }))
    return writeDecisions(db, notArrivedSql, records, operator.actor)
  })
}

/**
 * Withdraws an id that an operator gave, so the record is uncertain again.
 * @returns false if no operator gave an id, or the record took a step since
 */
export function withdrawGivenTransactionId(operator: Operator, seen: SeenRecord): Promise<boolean> {
  return withSubmissionsLocked(operator, [seen], async (db) => {
    const taken = await writeDecisions(db, takeBackSql, [seen], operator.actor)
    return taken.length > 0
  })
}

/**
 * True if an operator may settle submission `s`. Includes records that ended under an id that an operator gave, because
 * the id may be another record's.
 */
const settleableSql = `s.emptied_at is null and (
  s.state = 'uncertain' or s.probing or (s.may_have_arrived and not s.changed_after_sent and s.state in ('failed', 'rejected') and s.body is not null)
  or (s.state = 'accepted' and s.not_done_ms is null) or (s.state in ('accepted', 'completed', 'failed') and s.id_by_person)
)`

const former = `'former', jsonb_strip_nulls(jsonb_build_object('code', f.error_code, 'error', f.error,
  'transactionId', f.transaction_id, 'idempotencyKey', case when f.idempotency_key <> w.idempotency_key then f.idempotency_key end))`

const arrived = {
  fields: '"transactionId" text',
  // `accepted_at` is the time of sending, because this poll comes late. A short age would teach the schedule that
  // processing is quick.
  set: `state = case when s.tracked then 'accepted' else 'completed' end,
    transaction_id = r."transactionId", id_by_person = true, in_doubt = true, ${resetColumnsByLifetimeSql('transaction')},
    held = false, probing = false, due_at = null, claim_id = null, instance_id = null, accepted_at = coalesce(s.sent_at, clock_timestamp()),
    ended_at = case when not s.tracked then clock_timestamp() end`,
  detail: `'transactionId', w.transaction_id, ${former}`,
}

const arrivedSql = {
  resolved: decisionSql({
    ...arrived,
    allowed: settleableSql,
    cause: 'resolved',
    message: `'resolved: arrived as ' || w.transaction_id`,
  }),
  recovered: decisionSql({
    ...arrived,
    allowed: `(${settleableSql} or s.state in ('queued', 'sending', 'failed', 'rejected'))`,
    cause: 'recovered',
    message: `'recovered: arrived as ' || w.transaction_id`,
  }),
}

/** Tracks arrived records, or completes untracked ones. Runs in a transaction. */
export async function settleArrivedRecords(
  db: Database,
  queue: PollQueue,
  arrivals: readonly { id: string; revision: number; transactionId: string }[],
  { how, actor }: { how: keyof typeof arrivedSql; actor: Actor },
): Promise<DecidedSubmission[]> {
  const settled = await writeDecisions(db, arrivedSql[how], arrivals, actor)
  await queue.makeDue(
    db,
    settled.map(({ id }) => id),
  )
  return settled
}

const notArrivedSql = decisionSql({
  fields: '"newKey" boolean, "idempotencyKey" uuid, "overAfterMs" float8',
  allowed: `${settleableSql} and coalesce(${overAtSql('r."overAfterMs"')} <= clock_timestamp(), true)
    and ${newerVersionIdSql('s')} is null`,
  set: `state = 'queued', probing = false, held = s.key is not null, due_at = clock_timestamp(),
    idempotency_key = case when ${keepsIdempotencyKeySql('f')} and not r."newKey" then s.idempotency_key else r."idempotencyKey" end,
    in_doubt = true, transaction_id = null, id_by_person = false, ${resetColumnsByLifetimeSql('start')},
    accepted_at = null, ended_at = null`,
  cause: 'resolved',
  message: `'resolved: not arrived'`,
  detail: former,
})

/** Another record may get the id. */
const takeBackSql = decisionSql({
  allowed: 's.id_by_person and s.emptied_at is null',
  set: `state = 'uncertain', in_doubt = true, transaction_id = null, id_by_person = false,
    ${resetColumnsByLifetimeSql('transaction', {
      error: "'an operator withdrew the transaction id of this record. The record may still have arrived'",
    })},
    accepted_at = null, ended_at = clock_timestamp()`,
  cause: 'withdrawn',
  message: `'resolved: taken back that it is ' || f.transaction_id`,
  detail: former,
})
