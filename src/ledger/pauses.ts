import { boundText, textCharsMax } from '../boundText.ts'
import type { Config } from '../config.ts'
import type { AnsweredRecord } from '../model/dispatch.ts'
import type { PauseReason, PauseToRaise } from '../model/service.ts'
import { type Database, epochMsSql } from '../postgres/database.ts'
import type { Operator, WhoAndReason } from './operator/operator.ts'

/** Milliseconds that a pause lasts, by step. The last step repeats. */
export interface PauseBackoff {
  throttled: readonly number[]
  unavailable: readonly number[]
  unauthorized: readonly number[]
  unreachable: readonly number[]
  /** Used if each trial has to send a record. */
  patient: readonly number[]
}

/** See docs/why/contract.md, "What an answer means". */
export function createPauseBackoff({
  unavailablePauseMs,
  unauthorizedPauseMs,
}: Pick<Config, 'unavailablePauseMs' | 'unauthorizedPauseMs'>): PauseBackoff {
  return {
    throttled: [1_000, 2_000, 4_000, 8_000],
    unavailable: [unavailablePauseMs],
    unauthorized: [unauthorizedPauseMs],
    unreachable: [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000],
    patient: [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 120_000, 300_000, 600_000, 1_200_000, 1_800_000],
  }
}

export function chooseBackoffStepsMs(call: PauseToRaise, backoff: PauseBackoff): readonly number[] {
  if (call.answeredByOther) return [...Array(quickTries).fill(backoff.unreachable[0]), ...backoff.patient]
  return call.hasLongBackoff ? backoff.patient : backoff[call.reason]
}

/** Number of quick trials if something other than the service answered. */
const quickTries = 10

/** An operator's pause is active until its time is over, any other pause until a trial has succeeded. */
export const isActivePauseSql = `cleared_at is null and (reason <> 'operator' or until is null or until > clock_timestamp())`

/** True after a trial ended the pause, for an hour or until a record gets through. Meanwhile, records go one at a time. */
export const wasPauseClearedInLastHourSql = `cleared_at > clock_timestamp() - interval '1 hour'`

/**
 * Counts records that the service itself answered. A pause that a trial ended is kept until the service accepts a
 * record, or rejects one with an error code: then deletes the pause. Locks rows in sorted order, to avoid deadlocks.
 */
export async function addAnswerCountsAndDropEndedPauses(
  db: Database,
  answeredRecords: readonly AnsweredRecord[],
): Promise<void> {
  await db.query(
    `with forgotten as (delete from outboxd.pause where cleared_at is not null and $2),
     r as (select resource, coalesce(met, '') as met from json_to_recordset($1) as r(resource text, met text))
     insert into outboxd.passage as p (resource, met, count, at)
     select r.resource, r.met, count(*), ${answeredRecordCountOfResourceSql('r')} + (select count(*) from r each where each.resource = r.resource)
     from r group by r.resource, r.met order by r.resource, r.met
     on conflict (resource, met) do update set count = p.count + excluded.count, at = greatest(p.at, excluded.at)`,
    [JSON.stringify(answeredRecords), answeredRecords.some(({ hasServiceVerdict }) => hasServiceVerdict)],
  )
}

export function answeredRecordCountOfResourceSql(alias: string): string {
  return `(select coalesce(sum(p.count), 0)::bigint from outboxd.passage p where p.resource = ${alias}.resource)`
}

/** How many of the last answered records `othersRecovered` looks at to find one that had met the same pause. */
const recentPassages = 8

/**
 * JSON of a submission's `PauseStreak`: how often the submission met the same pause, and whether other records got
 * through. If every third answer is a 503, some records meet a pause three times by bad luck. `othersRecovered` tells
 * such records from a record that causes the pause.
 */
export const pauseStreakJsonSql = (submissionAlias: string): string =>
  `case when ${submissionAlias}.met_pause is not null then json_build_object('reason', ${submissionAlias}.met_pause, 'times', ${submissionAlias}.met_times,
     'othersThrough', ${submissionAlias}.met_passages < ${answeredRecordCountOfResourceSql(submissionAlias)},
     'othersRecovered', exists (select from outboxd.passage p where p.resource = ${submissionAlias}.resource
        and p.met = ${submissionAlias}.met_pause and p.at > least(${submissionAlias}.met_passages, ${answeredRecordCountOfResourceSql(submissionAlias)} - ${recentPassages}))) end`

/**
 * JSON of a submission's `RefusedPolls`. Reads the event log only if polls were refused. A later successful trial
 * counts as another record that got through, because no other may be under way.
 */
export const refusedPollsJsonSql = (submissionAlias: string): string =>
  `json_build_object('times', ${submissionAlias}.refused_polls, 'othersThrough', ${submissionAlias}.refused_polls > 0 and (exists (
     select from outboxd.submission_event e where e.id > ${submissionAlias}.refused_event
       and e.from_state in ('sending', 'accepted') and e.to_state in ('accepted', 'completed')
       and e.from_state <> e.to_state)
     or exists (select from outboxd.pause p where p.cleared_at > (
       select e.at from outboxd.submission_event e where e.id = ${submissionAlias}.refused_event))))`

export const lastEventIdSql = '(select coalesce(max(e.id), 0) from outboxd.submission_event e)'

/**
 * The backoff step rises only if the pause's time was over, so that ten requests in flight count as one. The step falls
 * only after a record got through, because a trial without a record does not meet some pauses.
 */
const nextLevelSql = `case when p.cleared_at is not null and not (p.${wasPauseClearedInLastHourSql}) then 0
  when p.until <= clock_timestamp() then least(p.level + 1, cardinality($3::float8[]) - 1) else p.level end`

/** If the clock was set back after `until` was set, the pause lasts its whole time from now. */
const untilWithCorrectedClockSql = "p.until - greatest(p.set_at - clock_timestamp(), interval '0')"

export async function raisePause(db: Database, call: PauseToRaise, backoff: PauseBackoff): Promise<void> {
  const steps = chooseBackoffStepsMs(call, backoff)
  await db.query(
    `insert into outboxd.pause as p (reason, until, detail)
     values ($1, clock_timestamp() + greatest($2::float8, ($3::float8[])[1]) * interval '1 ms', $4)
     on conflict (reason) do update set
       since = case when p.cleared_at is not null and not (p.${wasPauseClearedInLastHourSql}) then excluded.since else p.since end,
       level = ${nextLevelSql},
       until = greatest(${untilWithCorrectedClockSql},
         clock_timestamp() + greatest($2::float8, ($3::float8[])[1 + ${nextLevelSql}]) * interval '1 ms'),
       probe_until = null, cleared_at = null, detail = excluded.detail`,
    [call.reason, call.askedMs ?? 0, steps, boundText(call.detail, textCharsMax.excerpt)],
  )
}

/** The pause that was raised last comes first. */
export async function readActivePauses(db: Database): Promise<{ reason: string; detail: string }[]> {
  const { rows } = await db.query<{ reason: string; detail: string }>(
    `select reason, detail from outboxd.pause where ${isActivePauseSql} order by set_at desc`,
  )
  return rows
}

/** `unproven`: a record has yet to prove that the last pause is over. */
export async function readSendingState(db: Database): Promise<'paused' | 'unproven' | 'open'> {
  const { rows } = await db.query<{ isPaused: boolean; isUnproven: boolean }>(
    `select coalesce(bool_or(${isActivePauseSql}), false) as "isPaused",
       coalesce(bool_or(${wasPauseClearedInLastHourSql}), false) as "isUnproven" from outboxd.pause`,
  )
  return rows[0]?.isPaused ? 'paused' : rows[0]?.isUnproven ? 'unproven' : 'open'
}

export async function claimTrialRequest(db: Database, lostAfterMs: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `update outboxd.pause set probe_until = clock_timestamp() + $1 * interval '1 ms'
     where reason <> 'operator' and cleared_at is null and until <= clock_timestamp()
       and (probe_until is null or probe_until <= clock_timestamp())
       and not exists (select from outboxd.pause where cleared_at is null and (until is null or until > clock_timestamp()))`,
    [lostAfterMs],
  )
  return (rowCount ?? 0) > 0
}

/** @returns true if this instance sends the one record that has to prove that the pauses are over */
export async function claimFirstRecordAfterTrial(db: Database, lostAfterMs: number): Promise<boolean> {
  const { rowCount } = await db.query(
    // An `until` after a clock that was set back would hold the pause's next time.
    `update outboxd.pause set probe_until = clock_timestamp() + $1 * interval '1 ms', until = least(until, clock_timestamp())
     where ${wasPauseClearedInLastHourSql} and (probe_until is null or probe_until <= clock_timestamp())`,
    [lostAfterMs],
  )
  return (rowCount ?? 0) > 0
}

export async function endPausesAfterTrial(db: Database): Promise<void> {
  await db.query(
    `with operators as (delete from outboxd.pause where reason = 'operator' and until <= clock_timestamp())
     update outboxd.pause set cleared_at = clock_timestamp(), probe_until = null
     where reason <> 'operator' and cleared_at is null and until <= clock_timestamp()`,
  )
}

/** Lets another instance make the trial, because this instance sent nothing or got no result. */
export async function giveBackTrialRequest(db: Database): Promise<void> {
  await db.query(`update outboxd.pause set probe_until = null where until <= clock_timestamp()`)
}

export const describeOperatorPause = ({ who, reason }: WhoAndReason): string =>
  reason === null ? `(${who})` : `${reason} (${who})`

/** @param durationMs null for a pause without an end */
export async function raiseOperatorPause({ ledger, actor }: Operator, durationMs: number | null): Promise<void> {
  await ledger.query(
    `with pause as (
       insert into outboxd.pause (reason, until, detail)
       values ('operator', clock_timestamp() + $2::float8 * interval '1 ms', $1)
       on conflict (reason) do update set since = excluded.since, until = excluded.until, detail = excluded.detail,
         probe_until = null
       returning since, until
     )
     insert into outboxd.operator_act (at, act, who, account, reason, until)
     select since, 'pause', $3, $4, $5, until from pause`,
    [describeOperatorPause(actor), durationMs, actor.who, actor.account, actor.reason],
  )
}

export interface OperatorPause {
  reason: 'operator'
  sinceMs: number
  /** Null: until an operator resumes. */
  untilMs: number | null
  detail: string
  /** Null if no act is logged for it. */
  who: string | null
}

export async function readOperatorPause(db: Database): Promise<OperatorPause | null> {
  const { rows } = await db.query<OperatorPause>(
    `select reason, ${epochMsSql('since')} as "sinceMs", ${epochMsSql('until')} as "untilMs", detail,
       (select a.who from outboxd.operator_act a where a.act = 'pause' and a.at = p.since limit 1) as who
     from outboxd.pause p where reason = 'operator' and ${isActivePauseSql}`,
  )
  return rows[0] ?? null
}

/** @returns the pause's text; null if no operator's pause was active */
export async function endOperatorPause({ ledger, actor: { who, account, reason } }: Operator): Promise<string | null> {
  const { rows } = await ledger.query<{ detail: string; isOn: boolean }>(
    `with ended as (
       delete from outboxd.pause where reason = 'operator' returning detail, ${isActivePauseSql} as is_on
     ), act as (
       insert into outboxd.operator_act (act, who, account, reason, detail)
       select 'resume', $1, $2, $3, jsonb_build_object('ended', detail) from ended where is_on
     )
     select detail, is_on as "isOn" from ended`,
    [who, account, reason],
  )
  return rows[0]?.isOn ? rows[0].detail : null
}

export async function makePauseTrialsDue({
  ledger,
  actor: { who, account, reason },
}: Operator): Promise<PauseReason[]> {
  const { rows } = await ledger.query<{ reason: PauseReason }>(
    `with shortened as (
       update outboxd.pause set until = least(until, clock_timestamp()), probe_until = null
       where reason <> 'operator' and cleared_at is null and until is not null returning reason
     ), act as (
       insert into outboxd.operator_act (act, who, account, reason, detail)
       select 'resume --all', $1, $2, $3, jsonb_build_object('pauses', json_agg(reason order by reason)) from shortened
       having count(*) > 0
     )
     select reason from shortened`,
    [who, account, reason],
  )
  return rows.map((row) => row.reason)
}
