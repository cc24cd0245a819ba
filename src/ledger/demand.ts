import type { Demand } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import type { Resource } from '../resources.ts'
import { activePause, unprovenPause } from './pauses.ts'

/**
 * Looks at what is ready, due, free and paused. @param most how far to count
 *
 * A statement on its own, for `now()` is then the time of the look; unlike `clock_timestamp()` it can bound an index
 * scan. The counts are in an index's order because the planner may otherwise, on statistics of a busier or emptier time,
 * read the whole ledger.
 */
export async function readDemand(db: Database, most: number): Promise<Demand> {
  const { rows } = await db.query<Demand>(
    `select
       (select count(*)::int from (select from outboxd.submission
          where state = 'queued' and not held and due_at <= now() order by due_at limit $1) ready) as "submissionsReady",
       (select count(*)::int from (select from outboxd.submission
          where job_id is not null and not polled_rarely and poll_at <= now() order by poll_at limit $1) due) as "pollsDue",
       (select count(*)::int from (select from outboxd.submission
          where job_id is not null and polled_rarely and poll_at <= now() order by poll_at limit $1) due) as "rarePollsDue",
       (select coalesce(extract(epoch from now() - min(poll_at))::float8 * 1000, 0) from outboxd.submission
          where job_id is not null and not polled_rarely and poll_at <= now()) as "pollOverdueMs",
       (select count(*)::int from (select from outboxd.submission
          where job_id is not null and not polled_rarely order by poll_at limit 10000) t) as tracked,
       (select coalesce(sum(permits), 0)::int from outboxd.slot) as capacity,
       (select coalesce(sum(permits), 0)::int from outboxd.slot where free_at <= now()) as "permitsFree",
       (select coalesce(sum(spent_on_submissions), 0)::int from outboxd.slot
          where free_at > now() and taken_by is null)
         + (select count(*)::int from outboxd.submission where state = 'sending') as "spentOnSubmissions",
       (select extract(epoch from least(
          (select min(due_at) from outboxd.submission
             where state = 'queued' and not held and due_at > now()),
          (select min(poll_at) from outboxd.submission
             where job_id is not null and not polled_rarely and poll_at > now()),
          (select min(poll_at) from outboxd.submission
             where job_id is not null and polled_rarely and poll_at > now())
        ) - now())::float8 * 1000) as "nextDueMs",
       (select extract(epoch from min(free_at) - now())::float8 * 1000 from outboxd.slot
          where permits > 0 and free_at > now()) as "nextSlotMs",
       (select coalesce(json_agg(json_build_object('reason', reason,
          'leftMs', extract(epoch from greatest(until, probe_until) - now()) * 1000,
          'forMs', extract(epoch from now() - since) * 1000)), '[]')
        from outboxd.pause where ${activePause}) as pauses,
       (select case when count(*) = 0 then 'none' when bool_or(probe_until > now()) then 'under way' else 'wanted' end
        from outboxd.pause where ${unprovenPause}) as proof`,
    [most],
  )
  return rows[0] as Demand
}

/** An interval in which a transaction became done, in milliseconds since acceptance. */
export interface ObservedTime {
  resource: Resource
  afterMs: number
  untilMs: number
}

/** How long the last finished transactions took, oldest first. */
export async function readProcessingTimes(db: Database, limit: number): Promise<ObservedTime[]> {
  const { rows } = await db.query<ObservedTime>(
    `select resource, coalesce(not_done_ms, 0)::float8 as "afterMs", done_ms::float8 as "untilMs"
     from outboxd.submission where ended_at is not null and done_ms is not null order by ended_at desc limit $1`,
    [limit],
  )
  return rows.reverse()
}
