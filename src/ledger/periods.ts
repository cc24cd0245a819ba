import type { EndState } from '../model.ts'
import type { Database } from '../postgres/database.ts'

export type Span = 'minute' | 'hour'

export interface Period extends Record<EndState, number> {
  beganMs: number
  /** From the row's creation to the record's end. Null if only operators ended records. */
  waitP50Ms: number | null
  waitP95Ms: number | null
  /** Rows waiting at the end of the minute, or at most in the hour. */
  waiting: number | null
}

/** Plots show a day of minutes and a week of hours. The service's targets need 28 days of hours. */
const spans: Record<Span, { length: string; steps: number; backTo: string; keep: string; mostAtOnce: number }> = {
  minute: { length: '1 minute', steps: 1, backTo: '2 days', keep: '2 days', mostAtOnce: 60 },
  hour: { length: '1 hour', steps: 60, backTo: '7 days', keep: '29 days', mostAtOnce: 2 },
}

const timedMax = 1_000

/** A record that ended before a period's end may be committed after it. */
const settled = `interval '5 seconds'`

/** Writes up to `mostAtOnce` missing past periods, the oldest first. One daemon writes at a time. */
export async function writePeriodStatistics(
  db: Database,
  span: Span,
  outboxWaiting: number | null,
): Promise<{ written: number; hasMore: boolean }> {
  const { length, steps, backTo, mostAtOnce } = spans[span]
  const { rows } = await db.query<{ written: number }>(
    `with turn as materialized (
       select pg_try_advisory_xact_lock(7167) as mine
     ), latest as materialized (
       select date_trunc($1, clock_timestamp() - ${settled}, 'UTC') - $2::interval as began_at
     ), missing as materialized (
       select m.began_at from latest, generate_series(
         greatest(
           coalesce(
             (select max(p.began_at) + $2::interval from outboxd.period p where p.span = $1 and p.began_at <= latest.began_at),
             -- not before the first end
             (select date_trunc($1, min(first.ended_at), 'UTC')
              from unnest(array['completed', 'failed', 'rejected', 'uncertain', 'discarded']) s(state), lateral (
                select ended_at from outboxd.submission
                where state = s.state and ended_at is not null order by ended_at limit 1
              ) first),
             latest.began_at),
           date_trunc($1, clock_timestamp() - $3::interval, 'UTC')),
         latest.began_at, $2::interval
       ) m(began_at)
       where (select mine from turn) order by m.began_at limit $4
     ), written as (
       insert into outboxd.period (span, began_at, completed, failed, rejected, uncertain, discarded,
         wait_p50_ms, wait_p95_ms, waiting)
       select $1, m.began_at, counts.completed, counts.failed, counts.rejected, counts.uncertain, counts.discarded,
         waits.percentiles[1], waits.percentiles[2],
         case when $1 = 'hour' then (select max(p.waiting) from outboxd.period p
             where p.span = 'minute' and p.began_at >= m.began_at and p.began_at < m.began_at + $2::interval)
           when m.began_at = latest.began_at
             then $6::bigint + (select coalesce(sum(delta), 0) from outboxd.state_delta where state = 'queued')
         end
       from missing m, latest, lateral (
         select count(*) filter (where state = 'completed') as completed, count(*) filter (where state = 'failed') as failed,
           count(*) filter (where state = 'rejected') as rejected, count(*) filter (where state = 'uncertain') as uncertain,
           count(*) filter (where state = 'discarded') as discarded
         from outboxd.submission
         where state in ('completed', 'failed', 'rejected', 'uncertain', 'discarded')
           and ended_at >= m.began_at and ended_at < m.began_at + $2::interval
       ) counts, lateral (
         select percentile_cont(array[0.5, 0.95]) within group (order by timed.wait_ms) as percentiles
         from generate_series(0, $5 - 1) step, lateral (
           select extract(epoch from ended_at - recorded_at)::float8 * 1000 as wait_ms from outboxd.submission
           where state in ('completed', 'failed', 'rejected', 'uncertain')
             and ended_at >= m.began_at + step * interval '1 minute'
             and ended_at < m.began_at + (step + 1) * interval '1 minute'
           limit ${timedMax}
         ) timed
       ) waits
       on conflict (span, began_at) do nothing returning 1
     )
     select count(*)::int as written from written`,
    [span, length, backTo, mostAtOnce, steps, outboxWaiting],
  )
  const written = rows[0]?.written ?? 0
  return { written, hasMore: written === mostAtOnce }
}

export async function sumRequestCountsByHour(db: Database): Promise<void> {
  await db.query(
    `insert into outboxd.request_hour (hour, kind, requests, failed, answered, slow)
     select date_trunc('hour', minute, 'UTC'), kind, sum(requests), sum(failed), sum(answered), sum(slow)
     from outboxd.request_count
     where minute < date_trunc('hour', clock_timestamp() - ${settled}, 'UTC')
       and minute >= coalesce((select max(hour) + interval '1 hour' from outboxd.request_hour), '-infinity')
     group by 1, 2 on conflict (hour, kind) do nothing`,
  )
}

export async function prunePeriodStatistics(db: Database): Promise<void> {
  await db.query(
    `with periods as (
       delete from outboxd.period where span = 'minute' and began_at < clock_timestamp() - $1::interval
         or span = 'hour' and began_at < clock_timestamp() - $2::interval
     )
     delete from outboxd.request_hour where hour < clock_timestamp() - $2::interval`,
    [spans.minute.keep, spans.hour.keep],
  )
}

export async function readPeriodStatistics(db: Database, span: Span, withinMs: number): Promise<Period[]> {
  const { rows } = await db.query<Period>(
    `select extract(epoch from began_at)::float8 * 1000 as "beganMs", completed, failed, rejected, uncertain, discarded,
       wait_p50_ms as "waitP50Ms", wait_p95_ms as "waitP95Ms", waiting::float8 as waiting
     from outboxd.period where span = $1 and began_at >= clock_timestamp() - $2 * interval '1 ms' order by period.began_at`,
    [span, withinMs],
  )
  return rows
}
