import type { BenchDatabase } from './postgres.ts'

/** Numbers of records on their way and of records that wait for a person. They are small in a ledger of any size. */
const standing = { queued: 1_000, accepted: 500, failed: 300, rejected: 200, uncertain: 50 } as const
const underWay = Object.values(standing).reduce((sum, count) => sum + count, 0)
const rowsAtOnce = 250_000
const fillers = 2

export interface LedgerFill {
  /** The first outbox id. */
  first: number
  count: number
  /** Ended records have ended between `oldestDays` and `newestDays` ago. */
  oldestDays: number
  newestDays: number
}

/** Writes submissions as the daemon does, with three events each. */
export async function fillLedger({ pool }: BenchDatabase, { first, count, oldestDays, newestDays }: LedgerFill) {
  const fill = (at: number) =>
    pool.query(
      `with row as (
         select n, gen_random_uuid() as key, (lpad(to_hex(extract(epoch from ended)::bigint * 1000), 12, '0') || '7000' || '8' || substr(md5(n::text), 1, 15))::uuid as id, ended
         from (select n, now() - interval '1 day' * ($3::float8 - ($3::float8 - $4::float8) * (n - $1::bigint) / $5::float8) as ended
               from generate_series($1::bigint + $2::bigint, $1::bigint + $2::bigint + $6::bigint - 1) n) numbered
       ), kept as (
         insert into outboxd.submission (id, outbox_id, type, key, resource, payload, body, result, recorded_at, captured_at, state, attempt,
           idempotency_key, sent_at, transaction_id, accepted_at, polls, not_done_ms, done_ms, ended_at, row_created)
         select id, n::text, 'data', case when n % 2 = 0 then 'C' || n % 50000 end, 'data',
           json_build_object('customerId', 'C' || n % 50000, 'amount', n % 100000, 'text', repeat('x', 900))::text,
           json_build_object('customerId', 'C' || n % 50000, 'data', repeat('x', 900))::text, '{"ok":true}',
           ended - interval '90 s', ended - interval '90 s', 'completed', 1, key, ended - interval '80 s', gen_random_uuid()::text, ended - interval '79 s',
           3, 20000, 60000, ended, '12345678 ' || ended from row
         returning id, ended_at
       )
       insert into outboxd.submission_event (submission_id, at, from_state, to_state, attempt, cause, actor, who, detail)
       select id, ended_at, step.former, step.latter, 1, step.cause, 'outboxd', 'daemon 12345678', step.detail::jsonb from kept, (values
         (null, 'queued', 'captured', null), ('queued', 'sending', 'claimed', null),
         ('sending', 'accepted', 'accepted', '{"transactionId":"7f0c9f2e-0000-0000-0000-000000000000"}'),
         ('accepted', 'completed', 'completed', null)) step(former, latter, cause, detail)`,
      [first, at, oldestDays, newestDays, count, Math.min(rowsAtOnce, count - at)],
    )
  await Promise.all(
    Array.from({ length: fillers }, async (_, filler) => {
      for (let at = filler * rowsAtOnce; at < count; at += fillers * rowsAtOnce) await fill(at)
    }),
  )
}

/** Turns the newest records into those on their way and those that wait for a person. */
export async function fillUnderWay({ pool }: BenchDatabase): Promise<void> {
  await pool.query(
    `with newest as (
       select id, row_number() over (order by seq desc) as n from outboxd.submission order by seq desc limit $1
     ), state as (
       select id, case when n <= $2 then 'queued' when n <= $3 then 'accepted' when n <= $4 then 'failed'
         when n <= $5 then 'rejected' else 'uncertain' end as state from newest
     )
     update outboxd.submission s set state = t.state, done_ms = null,
       ended_at = case when t.state in ('queued', 'accepted') then null else s.ended_at end,
       due_at = case when t.state = 'queued' then now() end, error_code = case when t.state = 'failed' then 'E001' end
     from state t where s.id = t.id`,
    [
      underWay,
      standing.queued,
      standing.queued + standing.accepted,
      standing.queued + standing.accepted + standing.failed,
      standing.queued + standing.accepted + standing.failed + standing.rejected,
    ],
  )
  await pool.query('vacuum (analyze) outboxd.submission, outboxd.submission_event')
}
