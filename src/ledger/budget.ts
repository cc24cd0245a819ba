import type { PollLoad, RequestDemand, RequestPurpose, WantedRequests } from '../model/dispatch.ts'
import { type Database, queryOne } from '../postgres/database.ts'
import { isBehindOwnVersionSql } from './documents.ts'

/*
 * The budget is a log of requests (docs/why/budget.md):
 *
 *     claim    lock the row of outboxd.ledger; count the requests that count now; insert one for each that may leave
 *     answer   the request is over now, and counts for one window more
 *     unsent   the request never left, and does not count
 *     death    the request counts until a window after the end of its timeout, which the claim has noted
 */

/** True if a daemon has set a limit (settings.ts). */
export async function hasLimit(db: Database): Promise<boolean> {
  const { exists } = await queryOne<{ exists: boolean }>(
    db,
    `select to_regclass('outboxd.budget') is not null as exists`,
  )
  if (!exists) return false
  const { rowCount } = await db.query('select from outboxd.ledger where rate_limit is not null')
  return rowCount === 1
}

/**
 * Opens the transaction of a claim. A process that stops inside its claim holds up all others, so Postgres ends the
 * transaction.
 */
export const beginClaimSql = `set local idle_in_transaction_session_timeout = '2s'`

/**
 * Keeps other claims from counting until this transaction ends. Counts in a second statement, because the snapshot of a
 * statement that waits for the lock lacks the requests of the claim that held it.
 *
 * @returns how many requests the transaction may insert
 */
export async function lockBudget(db: Database): Promise<number> {
  await db.query('select from outboxd.ledger for no key update')
  const { free } = await queryOne<{ free: number | null }>(db, 'select free from outboxd.budget')
  return free ?? 0
}

export interface NewRequest {
  purpose: RequestPurpose
  /** Of a poll: its record, and the claim that fetched its job. */
  submissionId?: string
  claimId?: string
}

export interface Requester {
  instanceId: string
  /** The time from the claim until the request is over at the latest. */
  overAfterMs: number
}

/**
 * Inserts requests, which may leave after the COMMIT. Call `lockBudget` before.
 *
 * @returns their ids, in the order of `requests`
 */
export async function insertRequests(
  db: Database,
  { instanceId, overAfterMs }: Requester,
  requests: readonly NewRequest[],
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `with request as (
       insert into outboxd.request (instance_id, purpose, over_at, submission_id, claim_id)
       select $1, purpose, clock_timestamp() + $2 * interval '1 ms', submission_id, claim_id
       from unnest($3::text[], $4::uuid[], $5::uuid[]) with ordinality r(purpose, submission_id, claim_id, nth)
       order by nth returning id
     )
     select id from request order by id`,
    [
      instanceId,
      overAfterMs,
      requests.map(({ purpose }) => purpose),
      requests.map(({ submissionId }) => submissionId ?? null),
      requests.map(({ claimId }) => claimId ?? null),
    ],
  )
  return rows.map(({ id }) => id)
}

export async function endAnsweredRequests(db: Database, instanceId: string, ids: readonly string[]): Promise<void> {
  await db.query(
    `update outboxd.request set over_at = clock_timestamp()
     where id = any($2::bigint[]) and instance_id = $1 and over_at > clock_timestamp()`,
    [instanceId, ids],
  )
}

/** Keeps the rows until they are tidied, because the ledger must have the newest request of each daemon. */
export async function endUnsentRequests(db: Database, instanceId: string, ids: readonly string[]): Promise<void> {
  await db.query(`update outboxd.request set over_at = '-infinity' where id = any($2::bigint[]) and instance_id = $1`, [
    instanceId,
    ids,
  ])
}

/**
 * If the service reports fewer remaining requests than the ledger counts as free, another client spends from the same
 * limit. Counts its requests, too, from now on. Ignores small differences, and requests that stopped counting after the
 * request with this answer began. Runs in a transaction.
 *
 * @returns how many requests were added
 */
export async function countRequestsOfOtherClient(
  db: Database,
  instanceId: string,
  { remaining, sinceRequestMs }: { remaining: number; sinceRequestMs: number },
): Promise<number> {
  await lockBudget(db)
  const { rowCount } = await db.query(
    `insert into outboxd.request (instance_id, purpose, over_at)
     select $1, 'other_client', clock_timestamp()
     from outboxd.ledger l, lateral (
       select l.rate_limit - $2 - count(*) as requests from (
         select from outboxd.request
         where over_at > statement_timestamp() - (l.window_ms + $3::float8) * interval '1 ms' order by over_at desc limit l.rate_limit
       ) counted
     ) missing, generate_series(1, least(missing.requests, ${othersMax})) n
     where missing.requests > greatest(2, l.rate_limit * 0.05)`,
    [instanceId, remaining, sinceRequestMs],
  )
  return rowCount ?? 0
}

/** At most as many requests of another client are inserted for one answer. */
const othersMax = 10_000

/** Counts the whole limit as spent, because the ledger may have lost requests that are over then at the latest. */
export async function countLimitAsSpent(db: Database, overAfterMs: number): Promise<void> {
  await db.query(
    `update outboxd.ledger set spent_at = clock_timestamp() + $1 * interval '1 ms', spent_set_at = clock_timestamp()`,
    [overAfterMs],
  )
}

/**
 * Deletes requests that no longer count, but keeps those of the last hour, in case the window becomes longer. If the
 * database's clock was set back, requests seem to come from the future: then they count from now on.
 */
export async function tidyRequests(db: Database): Promise<void> {
  await db.query(
    `with corrected as (
       update outboxd.request set over_at = over_at - (claimed_at - statement_timestamp()), claimed_at = statement_timestamp()
       where over_at > statement_timestamp() and claimed_at > statement_timestamp()
     ), corrected_limit as (
       update outboxd.ledger set spent_at = spent_at - (spent_set_at - statement_timestamp()), spent_set_at = statement_timestamp()
       where spent_set_at > statement_timestamp()
     )
     delete from outboxd.request r
     where claim_id is null
       -- an instance must find its newest one (history/history.ts), whatever becomes of the clock
       and (exists (select from outboxd.request later where later.id > r.id and later.instance_id = r.instance_id)
         or not exists (select from outboxd.instance i where i.id = r.instance_id))
       and claimed_at < statement_timestamp() - interval '1 h'
       and over_at < statement_timestamp() - greatest(interval '1 h', (select window_ms * interval '1 ms' from outboxd.ledger))`,
  )
}

/**
 * Polls get up to half of the free requests, rounded up, and submissions the rest.
 *
 *     free   wanted: submissions, polls   to submissions
 *       10                10,    0               10
 *       10                 4,    6                4
 *        6                 8,    2                4
 *        6                 8,    8                3
 *        1                 8,    8                0
 */
export function countFreeForSubmissions(
  { submissions, polls }: Pick<WantedRequests, 'submissions' | 'polls'>,
  free: number,
): number {
  return Math.min(submissions, Math.max(0, free - Math.min(polls, Math.ceil(free / 2))))
}

/**
 * Reads what is due and what may be sent, without a lock: an instance that finds nothing to do holds up no other.
 *
 * Call this outside a transaction, so that `now()` is the time of the call. (An index scan can use `now()`, but not
 * clock_timestamp().) Counts in the order of an index, because old statistics may make the planner read the whole
 * ledger. Polls that are due in one second are in no order, so the next one is the first of several.
 *
 * @param countMax ready records and due polls are counted up to this
 */
export async function readRequestDemand(db: Database, countMax: number): Promise<RequestDemand> {
  return queryOne<RequestDemand>(
    db,
    `select
       (select count(*)::int from (select from outboxd.submission q
          where state = 'queued' and not held and due_at <= now() and not ${isBehindOwnVersionSql('q')}
          order by due_at limit $1) ready) as "submissionsReady",
       (select count(*)::int from (select from outboxd.poll where is_due order by priority desc limit $1) due) as "pollsDue",
       (select count(*)::int from (select from outboxd.poll where is_rare_and_due order by priority desc limit $1) due)
         as "rarePollsDue",
       coalesce((select extract(epoch from now() - due_at)::float8 * 1000 from outboxd.poll
          where is_due order by priority desc limit 1), 0) as "pollOverdueMs",
       coalesce(budget.rate_limit, 0) as limit, coalesce(budget.free, 0) as free,
       extract(epoch from budget.next_free_at - now())::float8 * 1000 as "nextFreeMs",
       (select extract(epoch from least(
          (select min(due_at) from outboxd.submission
             where state = 'queued' and not held and due_at > now()),
          (select min(due_at) from (select due_at from outboxd.poll
             where not is_under_way and not is_rare and due_at > now() order by priority desc limit 20) next),
          (select due_at from outboxd.poll
             where not is_under_way and is_rare and due_at > now() order by priority desc limit 1)
        ) - now())::float8 * 1000) as "nextDueMs",
       (select coalesce(json_agg(json_build_object('reason', reason,
          'leftMs', extract(epoch from until - now()) * 1000,
          'forMs', extract(epoch from now() - since) * 1000)), '[]')
        from outboxd.standing_pause) as pauses,
       (select json_build_object('leftMs', extract(epoch from case when until is not null then greatest(until, trial_until) end - now()) * 1000,
          'hasGetWorked', has_get_worked)
        from outboxd.pause where reason = 'breaker' and state <> 'closed') as breaker
     from outboxd.budget`,
    [countMax],
  )
}

export async function readPollLoad(db: Database): Promise<PollLoad> {
  return queryOne<PollLoad>(
    db,
    `select
       (select count(*)::int from (select from outboxd.poll where not is_under_way and not is_rare
          order by priority desc limit 10000) t) as tracked,
       (select count(*) filter (where purpose = 'submission')::int from (
          select purpose from outboxd.request where over_at > now() - l.window_ms * interval '1 ms'
          order by over_at desc limit least(l.rate_limit, 10000)) newest) as "submissionsSent"
     from outboxd.ledger l`,
  )
}
