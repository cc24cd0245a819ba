import type pg from 'pg'
import { boundText, escapeNonAscii, textCharsMax } from '../boundText.ts'
import type { PauseBackoff } from '../model/breaker.ts'
import type { OutcomeBatch, WrittenStep } from '../model/dispatch.ts'
import { isEndState, type Transition } from '../model/submission.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { applyAnswers, lastEventIdSql, moveOpenersBehind } from './breaker.ts'
import { beginClaimSql, countRequestsOfOtherClient, endAnsweredRequests, endUnsentRequests } from './budget.ts'
import { isEndingOrSubmittedAgain, lockFreeDocumentsOf, supersedeOlderVersions } from './documents.ts'
import type { LedgerHistory } from './history/history.ts'
import { withKeysLockedThenReleased } from './keyOrder.ts'
import { endPolls, type PollQueue } from './queue.ts'
import { addRequestCounts } from './requestCounts.ts'
import {
  assignColumnsSql,
  columnsKeptAcrossSteps,
  emptyStepColumnValues,
  lockSubmissions,
  recordsetFieldsSql,
} from './submissions.ts'
import {
  findNewTransaction,
  lockTransactionIds,
  makeDuplicateTransactionsUncertain,
  readTransactionHolders,
} from './transactions.ts'

export interface InstanceLedger {
  ledger: pg.Pool
  queue: PollQueue
  instance: { id: string; who: string }
  history: LedgerHistory
  backoff: PauseBackoff
  requestOverAfterMs: number
}

type OutcomeLedger = Pick<InstanceLedger, 'ledger' | 'queue' | 'instance' | 'backoff'>

export interface WrittenOutcomes {
  written: WrittenStep[]
  heldBack: number
}

/** Writes a batch in one transaction. Writing a batch twice does no harm. */
export async function writeOutcomes(on: OutcomeLedger, batch: OutcomeBatch): Promise<WrittenOutcomes> {
  const written = await inTransaction(on.ledger, (db) => writeBatch(on, db, batch))
  const { remaining } = batch
  if (remaining === null) return { written, heldBack: 0 }
  const others = { remaining: remaining.requests, sinceRequestMs: remaining.ageMs() }
  // Not in the same transaction, because a claim that has locked the budget may wait for the breaker that the batch opened.
  // If this fails, the next answer reports the difference again.
  const heldBack = await inTransaction(on.ledger, (db) => countRequestsOfOtherClient(db, on.instance.id, others), {
    openingSql: beginClaimSql,
  }).catch(() => 0)
  return { written, heldBack }
}

async function writeBatch(on: OutcomeLedger, db: Database, batch: OutcomeBatch): Promise<WrittenStep[]> {
  // First, as a claim locks the breaker before records.
  const openers = await applyAnswers(db, batch.answers, on.backoff)
  const transitions = await moveOpenersBehind(db, batch.transitions, openers)
  const written = await writeUnderFence(on, db, transitions)
  await releaseBehind(db, transitions, written)
  if (batch.answeredRequests.length > 0) await endAnsweredRequests(db, on.instance.id, batch.answeredRequests)
  if (batch.unsentRequests.length > 0) await endUnsentRequests(db, on.instance.id, batch.unsentRequests)
  const stepped = new Set(written.map(({ submissionId }) => submissionId))
  const requests = transitions.flatMap(({ submission, request }) =>
    request !== null && stepped.has(submission.id) ? [request] : [],
  )
  await addRequestCounts(db, on.instance.id, requests)
  return written
}

/**
 * Writes the steps whose poll or claim this instance still has, and plans the next polls. Takes its locks in the order
 * that docs/why/architecture.md gives: ids of transactions, documents, submissions, requests, jobs.
 */
async function writeUnderFence(
  { queue, instance }: OutcomeLedger,
  db: Database,
  transitions: readonly Transition[],
): Promise<WrittenStep[]> {
  if (transitions.length === 0) return []
  const ids = transitions.flatMap((transition) => findNewTransaction(transition) ?? [])
  if (ids.length > 0) await lockTransactionIds(db, ids)
  const ending = transitions.filter(isEndingOrSubmittedAgain).map(({ submission }) => submission.id)
  if (ending.length > 0) await lockFreeDocumentsOf(db, ending)
  await lockSubmissions(
    db,
    transitions.map(({ submission }) => submission.id),
  )
  const polls = transitions.flatMap(({ poll }) => poll ?? [])
  const ended = new Set(polls.length === 0 ? [] : (await endPolls(db, polls)).map(({ requestId }) => requestId))
  const current = transitions.filter(({ poll }) => poll === null || ended.has(poll.requestId))
  const checked =
    ids.length === 0 ? current : makeDuplicateTransactionsUncertain(current, await readTransactionHolders(db, ids))
  const judged = await supersedeOlderVersions(db, checked)
  const written = await writeTransitions(db, judged, instance.who)

  const stepped = new Set(written.map((each) => each.submissionId))
  const effective = judged.filter(({ submission }) => stepped.has(submission.id))
  const planned = effective.flatMap(({ submission, change }) =>
    'pollInMs' in change ? [{ submissionId: submission.id, inMs: change.pollInMs, rarely: change.polledRarely }] : [],
  )
  const renewed = effective.filter(({ poll, change }) => poll !== null || 'pollInMs' in change)
  if (renewed.length > 0)
    await queue.replace(
      db,
      renewed.map(({ submission }) => submission.id),
      planned,
    )

  const changed = new Set(checked.filter((each, i) => each !== current[i]).map(({ submission }) => submission.id))
  return written.map((step) => ({ ...step, breach: changed.has(step.submissionId) ? 'duplicate_id' : null }))
}

/** Locks keys last (queue.ts). The answer to a poll releases nothing, because an accepted record holds nothing back. */
async function releaseBehind(
  db: Database,
  transitions: readonly Transition[],
  written: readonly WrittenStep[],
): Promise<void> {
  const stepped = new Set(written.map(({ submissionId }) => submissionId))
  const records = transitions.flatMap(({ submission }) =>
    stepped.has(submission.id) && submission.state !== 'accepted' ? [submission] : [],
  )
  await withKeysLockedThenReleased(db, records, async () => {})
}

export type WritableTransition = Omit<Transition, 'request'>

/**
 * Writes steps and events only for submissions that are as the request found them (the fence): no step was written
 * since, and after a POST the claim still has the record.
 */
export async function writeTransitions(
  db: Database,
  transitions: readonly WritableTransition[],
  who: string,
): Promise<Omit<WrittenStep, 'breach'>[]> {
  const { rows } = await db.query<Omit<WrittenStep, 'breach'>>(
    `with step as (
       select * from json_to_recordset($1) as t(id uuid, "fromState" text, revision int, "claimId" uuid,
         state text, "dueInMs" float8,
         "openedTimes" int, "unknown" boolean, ended boolean, cause text, message text, report boolean, ${recordsetFieldsSql})
     ), written as (
       update outboxd.submission s set
         state = t.state, revision = s.revision + 1, claim_id = null, instance_id = null,
         due_at = clock_timestamp() + t."dueInMs" * interval '1 ms',
         ${assignColumnsSql('t')},
         -- still on the wire: asks whether it arrived
         probing = t.state = 'sending',
         accepted_at = case when t.state = 'queued' then null
                            when t.state in ('accepted', 'completed')
                              -- the service has had a probed record since it was sent
                              then coalesce(s.accepted_at, case when s.probing then s.sent_at end, clock_timestamp())
                            else s.accepted_at end,
         opened_times = coalesce(t."openedTimes", s.opened_times),
         opened_event = case when t."openedTimes" > 0 then ${lastEventIdSql} else s.opened_event end,
         unknown_since = case when t."unknown" then coalesce(s.unknown_since, clock_timestamp()) end,
         id_by_person = s.id_by_person and t."transactionId" is not distinct from s.transaction_id,
         ended_at = case when t.ended then clock_timestamp() end,
         report_due = s.report_due or t.report,
         -- it may have arrived or not, so a later version with its content is no repetition
         request_digest = case when t.cause <> 'superseded' then s.request_digest end
       from step t
       where s.id = t.id and s.state = t."fromState" and s.revision = t.revision
         and s.claim_id is not distinct from t."claimId"
       returning s.id, s.type, s.state, s.attempt, s.polls, s.fruitless, t."fromState", t.cause, t.message, t."errorCode", t.error, t."transactionId",
         extract(epoch from clock_timestamp() - s.recorded_at)::float8 * 1000 as lifetime_ms
     ), event as (
       -- Leaves out polls that found no change, so that the log stays readable.
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who, detail)
       select id, "fromState", state, attempt, cause, message, 'outboxd', $2,
         nullif(jsonb_strip_nulls(jsonb_build_object('transactionId', "transactionId", 'code', "errorCode", 'error', error)), '{}')
       from written where not ("fromState" = state and (cause = 'pending' or fruitless > 1))
     )
     select id as "submissionId", type, state, lifetime_ms as "lifetimeMs", polls from written`,
    [JSON.stringify(transitions.map(toStep)), who],
  )
  return rows
}

function toStep({ submission, change, cause, message }: WritableTransition) {
  const { state } = change
  return {
    // Columns that a change leaves out keep the values that were read, because the fence guarantees these values.
    ...Object.fromEntries(columnsKeptAcrossSteps.map((name) => [name, submission[name]])),
    ...emptyStepColumnValues,
    ...storable({ ...change, message }),
    cause,
    id: submission.id,
    fromState: submission.state,
    revision: submission.revision,
    claimId: submission.claimId,
    ended: isEndState(state),
    report: state !== submission.state,
  }
}

/** Cuts texts to what Postgres and an index can hold. */
function storable<T extends object>(step: T): T {
  const entries = Object.entries(step).map(([name, value]) => {
    if (typeof value !== 'string') return [name, value]
    // A cut transaction id would belong to another record.
    return [name, name === 'transactionId' ? escapeNonAscii(value) : boundText(value, charsMax[name])]
  })
  return Object.fromEntries(entries)
}

const charsMax: Record<string, number> = {
  errorCode: textCharsMax.code,
  error: textCharsMax.excerpt,
  message: textCharsMax.excerpt,
}
