import { boundText, textCharsMax } from '../boundText.ts'
import {
  type Breaker,
  type BreakerStep,
  closedBreaker,
  decideBreaker,
  type LostTrial,
  moveOpenerBehind,
  type OpenerHistory,
  type Opening,
  type PauseBackoff,
} from '../model/breaker.ts'
import type { BreakerAnswer } from '../model/dispatch.ts'
import type { PauseReason } from '../model/service.ts'
import type { Transition } from '../model/submission.ts'
import type { Database } from '../postgres/database.ts'
import type { Resource } from '../resources.ts'
import { isBehindOwnVersionSql } from './documents.ts'
import type { Operator } from './operator/operator.ts'

/*
 * The row of the breaker (src/model/breaker.ts). An outcome locks it first, before its records; a claim after
 * the ledger's row. Only answers that failed, and trials, lock it.
 */

/** Applies answers to the breaker. @returns the records whose answers opened it */
export async function applyAnswers(
  db: Database,
  answers: readonly BreakerAnswer[],
  backoff: PauseBackoff,
): Promise<Map<string, Opening>> {
  const openers = new Map<string, Opening>()
  for (const answer of answers) {
    const step = decideBreaker((await lockBreaker(db)) ?? closedBreaker, answer, backoff)
    await writeStep(db, step, answer)
    if (step.kind === 'opens' && step.openedBy !== null) openers.set(step.openedBy, step)
  }
  return openers
}

export interface LockedBreaker extends Breaker {
  openedBy: string | null
  /** A trial by a submission whose deadline passed without an answer. */
  lostTrial: LostTrial | null
}

/** @returns null if it never opened */
async function lockBreaker(db: Database): Promise<LockedBreaker | null> {
  const { rows } = await db.query<LockedBreaker>(
    `select state, level, opened_by as "openedBy", is_of_submission as "isOfSubmission", is_in_doubt as "isInDoubt",
       has_get_worked as "hasGetWorked", doubts, trial,
       coalesce(until <= clock_timestamp() and (trial_until is null or trial_until <= clock_timestamp()), false) as "isDue",
       (select json_build_object('requestId', r.id::text, 'cause', cause, 'isInDoubt',
          coalesce((select l.settings ->> 'UNCERTAIN_POLICY' from outboxd.ledger l), 'hold') = 'hold')
        from outboxd.request r where r.id = trial and r.purpose = 'submission') as "lostTrial"
     from outboxd.pause where reason = 'breaker' for update`,
  )
  return rows[0] ?? null
}

async function writeStep(db: Database, step: BreakerStep, { requestId }: BreakerAnswer): Promise<void> {
  switch (step.kind) {
    case 'stays':
      return
    case 'opens':
      return writeOpening(db, step)
    case 'tries-again':
      await db.query(
        `update outboxd.pause set has_get_worked = $2, trial = null, trial_until = null
         where reason = 'breaker' and state = 'half_open' and trial is not distinct from $1::bigint`,
        [requestId, step.hasGetWorked],
      )
      return
    case 'closes':
      await db.query(
        `update outboxd.pause set state = 'closed', since = clock_timestamp(), until = null, cause = null, detail = '',
           level = 0, opened_by = null, is_of_submission = false, is_in_doubt = false, has_get_worked = false, doubts = 0,
           trial = null, trial_until = null
         where reason = 'breaker'`,
      )
      return
    default:
      return step satisfies never
  }
}

async function writeOpening(db: Database, { pause, level, forMs, ...opening }: Opening): Promise<void> {
  await db.query(
    `insert into outboxd.pause as p (reason, state, cause, detail, level, until, opened_by, is_of_submission, is_in_doubt,
       doubts, has_get_worked)
     values ('breaker', case when $9 then 'half_open' else 'open' end, $1, $2, $3,
       clock_timestamp() + $4::float8 * interval '1 ms', $5, $6, $7, $8, $9)
     on conflict (reason) do update set state = excluded.state, cause = excluded.cause, detail = excluded.detail,
       level = excluded.level, until = excluded.until, opened_by = excluded.opened_by,
       is_of_submission = excluded.is_of_submission, is_in_doubt = excluded.is_in_doubt, doubts = excluded.doubts,
       has_get_worked = excluded.has_get_worked, trial = null, trial_until = null, set_at = excluded.set_at,
       since = case when p.state = 'closed' then excluded.since else p.since end`,
    [
      pause.reason,
      boundText(pause.detail, textCharsMax.excerpt),
      level,
      forMs,
      opening.openedBy,
      opening.isOfSubmission,
      opening.isInDoubt,
      opening.doubts,
      opening.hasGetWorked,
    ],
  )
}

/** Puts records that opened the breaker behind all that wait when the pause ends, or ends them. */
export async function moveOpenersBehind(
  db: Database,
  transitions: readonly Transition[],
  openers: ReadonlyMap<string, Opening>,
): Promise<readonly Transition[]> {
  if (openers.size === 0) return transitions
  const moved: Transition[] = []
  for (const transition of transitions) {
    const opening = openers.get(transition.submission.id)
    if (opening === undefined) moved.push(transition)
    else moved.push(moveOpenerBehind(transition, opening, await readOpenerHistory(db, transition.submission.id)))
  }
  return moved
}

async function readOpenerHistory(db: Database, submissionId: string): Promise<OpenerHistory> {
  const { rows } = await db.query<OpenerHistory>(
    `select s.opened_times as "openedTimes", s.opened_times > 0 and exists (
       select from outboxd.submission_event e where e.id > s.opened_event and e.submission_id <> s.id
         and e.from_state = 'sending' and e.to_state in ('accepted', 'completed')
         and e.actor = 'outboxd' and e.cause <> 'had_arrived'
     ) as "othersGotThrough"
     from outboxd.submission s where s.id = $1`,
    [submissionId],
  )
  return rows[0] ?? { openedTimes: 0, othersGotThrough: false }
}

export const lastEventIdSql = '(select coalesce(max(e.id), 0) from outboxd.submission_event e)'

/** @returns null if the breaker is closed, its pause is not over, another pause stands, or another instance has the trial */
export async function lockDueBreaker(db: Database): Promise<LockedBreaker | null> {
  const breaker = await lockBreaker(db)
  if (!breaker?.isDue) return null
  const others = await db.query(`select from outboxd.standing_pause where reason in ('operator', 'history', 'standby')`)
  return others.rowCount === 0 ? breaker : null
}

/** Lets the next record be the trial, because now there is nothing to try. Until it comes, nothing is held up. */
export async function letNextRecordBeTrial(db: Database): Promise<void> {
  await db.query(`update outboxd.pause set state = 'half_open', has_get_worked = true, trial = null, trial_until = null
     where reason = 'breaker'`)
}

/** Makes a request the trial, until it is over at the latest. */
export async function beginTrial(db: Database, requestId: string): Promise<void> {
  await db.query(
    `update outboxd.pause set state = 'half_open', trial = r.id, trial_until = r.over_at, set_at = clock_timestamp()
     from outboxd.request r where reason = 'breaker' and r.id = $1`,
    [requestId],
  )
}

/** Which requests may be claimed besides the trial. */
export async function readClaimable(db: Database): Promise<'all' | 'polls' | 'nothing'> {
  const { rows } = await db.query<{ arePolls: boolean }>(
    `select coalesce(has_get_worked, false) as "arePolls" from outboxd.pause where reason = 'breaker' and state <> 'closed'
     union all select false from outboxd.standing_pause where reason in ('operator', 'history', 'standby')`,
  )
  if (rows.length === 0) return 'all'
  return rows.every(({ arePolls }) => arePolls) ? 'polls' : 'nothing'
}

/** Reads the transaction that the service accepted last, as far as an index says; null if it accepted none. */
export async function readLastTransaction(db: Database): Promise<{ resource: Resource; transactionId: string } | null> {
  const { rows } = await db.query<{ resource: Resource; transactionId: string }>(
    `(select resource, transaction_id as "transactionId" from outboxd.submission
      where state = 'completed' and ended_at is not null and transaction_id is not null
      order by ended_at desc, seq desc limit 1)
     union all
     (select resource, transaction_id from outboxd.submission
      where state = 'accepted' and ended_at is null limit 1)
     limit 1`,
  )
  return rows[0] ?? null
}

/**
 * Locks the submission for a trial: if possible not the one that opened the breaker, and of the other resource, because
 * the service may grant only one of the two.
 */
export async function lockTrialSubmission(db: Database, openedBy: string | null): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>(
    `select s.id from outboxd.submission s left join outboxd.submission opener on opener.id = $1
     where s.state = 'queued' and not s.held and s.due_at <= clock_timestamp() and not ${isBehindOwnVersionSql('s')}
     order by s.id is not distinct from opener.id, s.resource is not distinct from opener.resource, s.due_at, s.seq
     limit 1 for update of s skip locked`,
    [openedBy],
  )
  return rows[0]?.id ?? null
}

/**
 * Lets the trial begin at once, also if the breaker waits for a person. It is a submission if one is ready: the person
 * takes the risk that GETs could not rule out.
 *
 * @returns what opened it; null if it is closed
 */
export async function makeTrialDue({ ledger, actor: { who, account, reason } }: Operator): Promise<PauseReason | null> {
  const { rows } = await ledger.query<{ cause: PauseReason }>(
    `with shortened as (
       update outboxd.pause set until = least(until, clock_timestamp()), set_at = clock_timestamp(), trial = null,
         trial_until = null, doubts = 0, state = 'open', has_get_worked = false, is_of_submission = false, is_in_doubt = false, level = level + 1 - level % 2
       where reason = 'breaker' and state <> 'closed' returning cause, opened_by
     ), opener as (
       update outboxd.submission s set due_at = least(s.due_at, clock_timestamp())
       from shortened where s.id = shortened.opened_by and s.state = 'queued'
     ), act as (
       insert into outboxd.operator_act (act, who, account, reason, detail)
       select 'resume --all', $1, $2, $3, jsonb_build_object('pauses', jsonb_build_array(cause)) from shortened
     )
     select cause from shortened`,
    [who, account, reason],
  )
  return rows[0]?.cause ?? null
}
