import type { ProblemKind } from '../model/problem.ts'
import type { PauseReason } from '../model/service.ts'
import { type State, states } from '../model/submission.ts'
import { type Database, epochMsSql, queryOne } from '../postgres/database.ts'
import { sessionNamesOfLedgerSql } from '../postgres/ledgerSchema.ts'
import { daemonSessionNames } from '../postgres/sessionSettings.ts'
import { type Resource, resourceNames } from '../resources.ts'
import { isBehindOwnVersionSql } from './documents.ts'
import { heartbeatSilenceMaxMs, isInstanceAliveSql } from './instances.ts'
import { blocksKeySql } from './keyOrder.ts'
import { standingProblemsSql } from './problems.ts'

export interface LedgerSnapshot {
  /** The database's clock. */
  nowMs: number
  submissions: Record<State, number>
  /** Records in `sending` for which the service is asked whether they arrived. */
  probing: number
  /** The creation time of the oldest captured record that is not sent yet. */
  oldestUnsentMs: number | null
  /** The time when the service got the oldest record that is polled. */
  oldestAcceptedMs: number | null
  /** Changes of documents that were sent before, which wait for a person. */
  changedAfterSent: number
  /** The time when the oldest failed or rejected record ended. */
  oldestForPersonMs: number | null
  pauses: { reason: PauseReason; sinceMs: number; untilMs: number | null; detail: string }[]
  problems: Partial<Record<ProblemKind, number>>
  /** 0 until the first daemon has run. */
  rateCapacity: number
  rateWindowMs: number
  rateAvailable: number
  /** Left to another client that spends from the budget. */
  rateHeldBack: number
  reportsDue: number
  oldestReportDueMs: number | null
  /** Those with a heartbeat in the last 5 s. */
  instances: { id: string; host: string; version: string; startedMs: number; beatMs: number }[]
  lastSilentMs: number | null
  /** True if a daemon has a visible session. A pooler may hide a session. */
  daemonConnected: boolean
}

/** Limits the records that count for `oldestReportDueMs`, because the events of each record are read. */
const reportsLookedAt = 1_000

const workingSessionNames = [daemonSessionNames.work, daemonSessionNames.heartbeat, daemonSessionNames.listen]

export async function readLedgerSnapshot(db: Database): Promise<LedgerSnapshot> {
  const { counts, ...rest } = await queryOne<
    Omit<LedgerSnapshot, 'submissions'> & { counts: Partial<Record<State, number>> }
  >(
    db,
    `with due as materialized (
       (select id, seq from outboxd.submission
        where report_due and report_put_off is distinct from revision)
       union all
       (select id, seq from outboxd.submission
        where report_due and report_put_off = revision)
     )
     select
       extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs",
       (select coalesce(json_object_agg(state, n), '{}') from
          (select state, sum(delta) as n from outboxd.state_delta group by state) counted) as counts,
       (select extract(epoch from min(recorded_at))::float8 * 1000 from outboxd.submission
          where state in ('queued', 'sending') and not probing) as "oldestUnsentMs",
       (select count(*)::int from outboxd.submission where state = 'sending' and probing) as probing,
       (select extract(epoch from min(coalesce(accepted_at, sent_at)))::float8 * 1000 from outboxd.submission
          where ended_at is null and (state = 'accepted' or state = 'sending' and probing)) as "oldestAcceptedMs",
       (select count(*)::int from outboxd.submission where changed_after_sent) as "changedAfterSent",
       (select extract(epoch from min(ended_at))::float8 * 1000 from outboxd.submission
          where state in ('failed', 'rejected')) as "oldestForPersonMs",
       (select coalesce(json_agg(json_build_object('reason', reason, 'detail', detail,
          'sinceMs', extract(epoch from since) * 1000, 'untilMs', extract(epoch from until) * 1000) order by set_at desc), '[]')
        from outboxd.standing_pause) as pauses,
       (select coalesce(json_object_agg(kind, n), '{}') from
          (select kind, count(*) as n from ${standingProblemsSql} group by kind) counted) as problems,
       coalesce(budget.rate_limit, 0) as "rateCapacity", coalesce(budget.window_ms, 0)::float8 as "rateWindowMs",
       coalesce(budget.free, 0) as "rateAvailable",
       (select count(*)::int from outboxd.request where purpose = 'other_client'
          and over_at > statement_timestamp() - budget.window_ms * interval '1 ms') as "rateHeldBack",
       (select coalesce(json_agg(json_build_object('id', id, 'host', host, 'version', version,
          'startedMs', extract(epoch from started_at) * 1000, 'beatMs', extract(epoch from beat_at) * 1000)
          order by started_at), '[]')
        from outboxd.instance i where ${isInstanceAliveSql('i')}) as instances,
       (select extract(epoch from max(beat_at))::float8 * 1000 from outboxd.instance i
        where not ${isInstanceAliveSql('i')}) as "lastSilentMs",
       exists (select from pg_stat_activity
        where application_name in ${sessionNamesOfLedgerSql('$2')} and datname = current_database()) as "daemonConnected",
       (select count(*)::int from due) as "reportsDue",
       (select extract(epoch from min(last.at))::float8 * 1000
        from (select id from due order by seq limit $1) first, lateral (
          select at from outboxd.submission_event where submission_id = first.id order by id desc limit 1
        ) last) as "oldestReportDueMs"
     from outboxd.budget`,
    [reportsLookedAt, workingSessionNames],
  )
  const submissions = Object.fromEntries(states.map((state) => [state, Number(counts[state] ?? 0)])) as Record<
    State,
    number
  >
  return { ...rest, submissions }
}

const deltasMax = 500

export async function mergeStateCountDeltas(db: Database): Promise<void> {
  await db.query(
    `with many as (select count(*) > $1 as yes from outboxd.state_delta),
     gone as (delete from outboxd.state_delta where (select yes from many) returning state, delta)
     insert into outboxd.state_delta (state, delta) select state, sum(delta) from gone group by state`,
    [deltasMax],
  )
}

export interface ReplaysAndDiscards {
  replays: number
  /** Types of discarded records. */
  discards: string[]
}

/** Within this time, the other instances notice that the counting instance has died. */
const uncountedMs = heartbeatSilenceMaxMs + 5_000

/**
 * Counts operators' replays and discards after an event. Only the oldest live instance counts them. The other instances
 * stay `uncountedMs` behind, so that the next one counts what a dead instance did not count.
 *
 * @param afterEventId null counts none, and returns the last event
 */
export async function countReplaysAndDiscardsOnce(
  db: Database,
  afterEventId: string | null,
  instanceId: string,
): Promise<ReplaysAndDiscards & { lastId: string }> {
  return queryOne<ReplaysAndDiscards & { lastId: string }>(
    db,
    `with me as (
       select coalesce($2 = (select i.id from outboxd.instance i where ${isInstanceAliveSql('i')}
         order by i.started_at, i.id limit 1), false) as first
     )
     select count(*) filter (where first and cause = 'replayed')::int as replays,
       coalesce(array_agg(type) filter (where first and to_state = 'discarded'), '{}') as discards,
       coalesce(max(e.id) filter (where first or at < clock_timestamp() - $3 * interval '1 ms'), $1::bigint,
         (select coalesce(max(id), 0) from outboxd.submission_event)) as "lastId"
     from me, outboxd.submission_event e join outboxd.submission s on s.id = e.submission_id where e.id > $1`,
    [afterEventId, instanceId, uncountedMs],
  )
}

/**
 * A transaction's age at its end: the middle between last seen pending and first seen done, because polls notice the
 * end late.
 */
export interface ProcessingTime {
  resource: Resource
  ms: number
}

/** Reads the last 300 of each resource, the newest last. */
export async function readProcessingTimes(db: Database): Promise<ProcessingTime[]> {
  const { rows } = await db.query<ProcessingTime>(
    `select r.resource, last.ms from unnest($1::text[]) r (resource), lateral (
       select (coalesce(s.not_done_ms, 0) + s.done_ms)::float8 / 2 as ms, s.ended_at from outboxd.submission s
       where s.resource = r.resource and s.ended_at is not null and s.done_ms is not null
       order by s.ended_at desc limit 300
     ) last order by last.ended_at`,
    [resourceNames],
  )
  return rows
}

export interface DaemonActivity {
  /** Null if a request may be made now. */
  nextFreeMs: number | null
  /** Average of the last completed records. */
  pollsPerRecord: number | null
  /** Records that wait behind a record of the same key that needs attention. */
  heldForPerson: number
  /** Earliest and latest due time of the queued records that wait for no other. */
  firstDueMs: number | null
  lastDueMs: number | null
  firstPollDueMs: number | null
  /** Since when nothing was captured or claimed; null if that was lately, or if no request is free. */
  idleSinceMs: number | null
  /** The same for claims, and for answers. */
  unclaimedSinceMs: number | null
  unansweredSinceMs: number | null
  nowMs: number
}

const lastCompleted = 200

const lastEventSql = (which: string): string => `(select at from outboxd.submission_event
  where id > (select max(id) - 100000 from outboxd.submission_event) and (${which} or actor = 'operator')
  order by id desc limit 1)`

const idleSinceSql = (lastSql: string): string => `(select extract(epoch from since)::float8 * 1000
  from greatest(${lastSql}, calm.begun) since where calm.had_free_request and since < clock_timestamp() - calm.gap)`

/** Daemons claim due records at least once a `gap`, even after timeouts. */
const calmSql = `select
    greatest((select min(unbroken_since) from outboxd.instance i where ${isInstanceAliveSql('i')}),
      (select at from outboxd.operator_act where act in ('resume', 'resume --all', 'recover') order by id desc limit 1),
      (select max(coalesce(until, since)) from outboxd.pause)) as begun,
    greatest(interval '60 s',
      (select (settings ->> 'REQUEST_TIMEOUT_SECONDS')::float8 * 2 from outboxd.ledger) * interval '1 s',
      (select window_ms * 2.0 / rate_limit from outboxd.ledger) * interval '1 ms') as gap,
    -- in each moment of the last 10 s
    (select l.rate_limit > (
        select count(*) from outboxd.request where over_at > statement_timestamp() - l.window_ms * interval '1 ms' - interval '10 s'
      ) from outboxd.ledger l) as had_free_request`

export async function readDaemonActivity(db: Database): Promise<DaemonActivity> {
  return queryOne<DaemonActivity>(
    db,
    `with calm as materialized (${calmSql})
     select
       (select extract(epoch from next_free_at)::float8 * 1000 from outboxd.budget) as "nextFreeMs",
       (select avg(polls)::float8 from (
          select last.polls from unnest($2::text[]) r (resource), lateral (
            select s.polls, s.ended_at from outboxd.submission s
            where s.resource = r.resource and s.ended_at is not null and s.done_ms is not null
            order by s.ended_at desc limit $1
          ) last order by last.ended_at desc limit $1) last) as "pollsPerRecord",
       (select coalesce(sum(n), 0)::int from (
          select key, min(seq) as seq from outboxd.submission s
          where key is not null and state not in ('queued', 'sending') and ${blocksKeySql('s')} group by key
        ) stop, lateral (
          select count(*) as n from outboxd.submission s
          where s.key = stop.key and s.seq > stop.seq and s.state = 'queued' and s.held
        ) behind) as "heldForPerson",
       (select extract(epoch from min(due_at))::float8 * 1000 from outboxd.submission q
          where state = 'queued' and not held and not ${isBehindOwnVersionSql('q')}) as "firstDueMs",
       (select extract(epoch from max(due_at))::float8 * 1000 from outboxd.submission q
          where state = 'queued' and not held and not ${isBehindOwnVersionSql('q')}) as "lastDueMs",
       (select extract(epoch from min(due_at))::float8 * 1000 from outboxd.poll where not is_rare) as "firstPollDueMs",
       ${idleSinceSql(lastEventSql("to_state in ('queued', 'sending')"))} as "idleSinceMs",
       ${idleSinceSql(lastEventSql("to_state = 'sending'"))} as "unclaimedSinceMs",
       ${idleSinceSql("(select max(minute) + interval '1 min' from outboxd.request_count)")} as "unansweredSinceMs",
       extract(epoch from clock_timestamp())::float8 * 1000 as "nowMs"
     from calm`,
    [lastCompleted, resourceNames],
  )
}

/** The requests that count now. */
export interface BudgetUse {
  /** 0 before the first daemon. */
  limit: number
  windowMs: number
  free: number
  /** Time until a request may be made; null if one may be made now. */
  nextFreeMs: number | null
  /** Requests by purpose. Those of other clients are held back. */
  submissions: number
  polls: number
  tokens: number
  questions: number
  ofOtherClients: number
  /** Requests without an answer yet. The other counts include them. */
  underWay: number
}

export async function readBudgetUse(db: Database): Promise<BudgetUse> {
  return queryOne<BudgetUse>(
    db,
    `select coalesce(b.rate_limit, 0) as limit, coalesce(b.window_ms, 0)::float8 as "windowMs", coalesce(b.free, 0) as free,
       ${epochMsSql('b.next_free_at - statement_timestamp()')} as "nextFreeMs", counted.*
     from outboxd.budget b, lateral (
       select count(*) filter (where purpose = 'submission')::int as submissions,
         count(*) filter (where purpose = 'poll')::int as polls,
         count(*) filter (where purpose = 'token')::int as tokens,
         count(*) filter (where purpose = 'question')::int as questions,
         count(*) filter (where purpose = 'other_client')::int as "ofOtherClients",
         count(*) filter (where over_at > statement_timestamp())::int as "underWay"
       from (
         select purpose, over_at from outboxd.request
         where over_at > statement_timestamp() - b.window_ms * interval '1 ms' order by over_at desc limit b.rate_limit
       ) newest
     ) counted`,
  )
}
