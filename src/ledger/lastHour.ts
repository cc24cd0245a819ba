import { type Database, epochMsSql } from '../postgres/database.ts'

/** One minute of the last hour, for charts. */
export interface MinuteOfLastHour {
  /** When it began. */
  atMs: number
  submissions: number
  polls: number
  completed: number
  notCompleted: number
  /** From the row's creation to the end of its record: half of the completed took at most this. Null if there are none. */
  halfMs: number | null
  /** 95 % took at most this. */
  mostMs: number | null
}

/** The newest ones, so that a viewer of a fast installation costs a few milliseconds. Earlier minutes then lack some. */
const endsMax = 5_000

/** Reads 60 minutes, the oldest first. */
export async function readLastHour(db: Database): Promise<MinuteOfLastHour[]> {
  const { rows } = await db.query<MinuteOfLastHour>(
    `with minute as (
       select generate_series(date_trunc('minute', now()) - interval '59 min', date_trunc('minute', now()), interval '1 min') as at
     ), request as (
       select minute, sum(requests) filter (where kind = 'submit') as submissions, sum(requests) filter (where kind = 'status') as polls
       from outboxd.request_count where minute > now() - interval '1 hour' group by minute
     ), completed as (
       select date_trunc('minute', ended_at) as minute, count(*) as records,
         percentile_disc(array[0.5, 0.95]) within group (order by extract(epoch from ended_at - recorded_at) * 1000) as took_ms
       from (select ended_at, recorded_at from outboxd.submission
         where state = 'completed' and not report_due and ended_at > now() - interval '1 hour'
         order by ended_at desc limit ${endsMax}) newest group by 1
     ), not_completed as (
       select date_trunc('minute', ended_at) as minute, count(*) as records
       from (select ended_at from outboxd.submission
         where state in ('failed', 'rejected', 'uncertain') and ended_at > now() - interval '1 hour'
         order by ended_at desc limit ${endsMax}) newest group by 1
     )
     select ${epochMsSql('minute.at')} as "atMs",
       coalesce(request.submissions, 0)::int as submissions, coalesce(request.polls, 0)::int as polls,
       coalesce(completed.records, 0)::int as completed, coalesce(not_completed.records, 0)::int as "notCompleted",
       completed.took_ms[1]::float8 as "halfMs", completed.took_ms[2]::float8 as "mostMs"
     from minute left join request on request.minute = minute.at left join completed on completed.minute = minute.at
       left join not_completed on not_completed.minute = minute.at
     order by minute.at`,
  )
  return rows
}
