import type pg from 'pg'
import { fillLedger } from '../../../tools/bench/harness/fillLedger.ts'

/** Fills the ledger with completed records and request counts of earlier days, as daemons would have left them. */
export async function fillPast(database: { url: string; pool: pg.Pool }): Promise<void> {
  await fillLedger(database, { first: 1_000_000, count: 2_000, oldestDays: 2, newestDays: 0.05 })
  // The daemon learns polling times from these records. The service of this test is fast.
  await database.pool.query('update outboxd.submission set polls = 1, not_done_ms = 0, done_ms = 300')
  await fillRequestHours(database.pool, 49)
  await database.pool.query(
    `insert into outboxd.request_count (minute, kind, instance_id, requests, failed, answered, slow)
     select date_trunc('minute', now()) - n * interval '1 minute', kind, gen_random_uuid(), 30 + n % 19, n % 37 / 36, 30 + n % 19, n % 23 / 22
     from generate_series(1, 1500) n, unnest(array['submit', 'status']) kind on conflict do nothing`,
  )
}

/** Fills in the requests of each hour of the last 25 days. @param firstAgo hours ago, where it begins */
export async function fillRequestHours(pool: pg.Pool, firstAgo: number): Promise<void> {
  await pool.query(
    `insert into outboxd.request_count (minute, kind, instance_id, requests, failed, answered, slow)
     select date_trunc('hour', now()) - n * interval '1 hour', kind, gen_random_uuid(), 3000 + 20 * (n % 40), n % 9, 3000 + 20 * (n % 40), 7 + n % 5
     from generate_series($1::int, 600) n, unnest(array['submit', 'status']) kind on conflict do nothing`,
    [firstAgo],
  )
}
