import type pg from 'pg'
import { fillLedger } from '../../../tools/bench/harness/fillLedger.ts'

/** Days before this night, as daemons would have left them: records that are done, and what plots and targets are drawn of. */
export async function fillPast(database: { url: string; pool: pg.Pool }): Promise<void> {
  await fillLedger(database, { first: 1_000_000, count: 2_000, oldestDays: 2, newestDays: 0.05 })
  // The daemon learns from it when to ask: the service of this night is quick.
  await database.pool.query('update outboxd.submission set polls = 1, not_done_ms = 0, done_ms = 300')
  await Promise.all([fillPeriods(database.pool, 'minute', 60, 2_000), fillPeriods(database.pool, 'hour', 3_600, 600)])
  await database.pool.query(
    `insert into outboxd.request_hour (hour, kind, requests, failed, answered, slow)
     select date_trunc('hour', now()) - n * interval '1 hour', kind, 3000 + 20 * (n % 40), n % 9, 3000 + 20 * (n % 40), 7 + n % 5
     from generate_series(1, 600) n, unnest(array['submit', 'status']) kind on conflict do nothing`,
  )
  await database.pool.query(
    `insert into outboxd.request_count (minute, kind, instance_id, requests, failed, answered, slow)
     select date_trunc('minute', now()) - n * interval '1 minute', kind, gen_random_uuid(), 30 + n % 19, n % 37 / 36, 30 + n % 19, n % 23 / 22
     from generate_series(1, 1500) n, unnest(array['submit', 'status']) kind on conflict do nothing`,
  )
}

/** Busy by day and quiet by night, with an hour in which the service was down. */
async function fillPeriods(pool: pg.Pool, span: 'minute' | 'hour', seconds: number, count: number): Promise<void> {
  await pool.query(
    `insert into outboxd.period (span, began_at, completed, failed, rejected, uncertain, discarded, wait_p50_ms, wait_p95_ms, waiting)
     select $1, began_at, case when is_down then 0 else round((busy * 34 + noise * 8) * $2 / 60) end, n % 17 / 16, n % 29 / 28, 0, 0,
       case when not is_down then 9000 + busy * 6000 + noise * 3000 end, case when not is_down then 24000 + busy * 18000 + noise * 15000 end,
       case when is_down then 400 + n % 30 * 40 else round(busy * busy * 25 + noise * 12) end
     from (select n, date_trunc($1, now()) - n * $2::int * interval '1 second' as began_at,
             0.55 + 0.45 * sin(n * $2::int * 2 * pi() / 86400) as busy, n * 7919 % 101 / 100.0 as noise,
             n * $2::int between 70000 and 73600 as is_down
           from generate_series(1, $3) n) past on conflict do nothing`,
    [span, seconds, count],
  )
}
