import pg from 'pg'
import { queueName } from '../../../src/ledger/queue.ts'

/**
 * The least that the daemon must do: the durable writes of a record's way, to the same tables, and nothing else. Each
 * step is committed as the daemon's is, in batches, by prepared statements; nothing is mapped, sent, decided, fenced,
 * counted or logged.
 *
 *     outbox row           ledger                                  queue
 *     locked, taken        captured, its event
 *                          sending, its event
 *                          accepted, its event                     a poll to come
 *     told: accepted       told
 *                                                                  the poll in hand
 *                          completed, its event                    the poll done
 *     told: completed      told
 *
 * argv: how many records a batch has. MAX_IN_FLIGHT records are on their way at once.
 */
const batchSize = Number(process.argv[2] ?? 32)
const batchesAtOnce = Math.max(1, Number(process.env.MAX_IN_FLIGHT ?? 128) / batchSize)
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: batchesAtOnce,
  options: '-c enable_seqscan=off -c enable_sort=off -c enable_bitmapscan=off -c jit=off',
})

const steps = {
  take: `with row as (
      select id from outbox where status = 'new' order by id limit $1 for no key update skip locked
    )
    update outbox o set status = 'queued', updated_at = now() from row where o.id = row.id returning o.id::text as id`,
  capture: `with kept as (
      insert into outboxd.submission (id, outbox_id, type, resource, payload, body, idempotency_key, recorded_at, state, due_at)
      select gen_random_uuid(), id::text, type, 'data', payload::text, payload::text, gen_random_uuid(), created_at, 'queued', now()
      from outbox where id = any($1::bigint[]) returning id
    ), event as (${event('kept', 'null', 'queued')})
    select id from kept`,
  send: `with s as (
      update outboxd.submission set state = 'sending', revision = revision + 1, attempt = 1, due_at = null,
        claim_id = gen_random_uuid(), instance_id = gen_random_uuid(), sent_at = now()
      where id = any($1::uuid[]) returning id
    ) ${event('s', `'queued'`, 'sending')}`,
  accept: `with s as (
      update outboxd.submission set state = 'accepted', revision = revision + 1, claim_id = null, instance_id = null,
        transaction_id = 't' || seq, accepted_at = now(), report_due = true
      where id = any($1::uuid[]) returning id
    ), event as (${event('s', `'sending'`, 'accepted')})
    insert into outboxd_jobs.job (id, name) select id, '${queueName}' from s`,
  poll: `update outboxd_jobs.job set state = 'active', started_on = now() where name = '${queueName}' and id = any($1::uuid[])`,
  complete: `with done as (delete from outboxd_jobs.job where name = '${queueName}' and id = any($1::uuid[])), s as (
      update outboxd.submission set state = 'completed', revision = revision + 1, polls = 1,
        done_ms = 200, ended_at = now(), result = '{}', report_due = true
      where id = any($1::uuid[]) returning id
    ) ${event('s', `'accepted'`, 'completed')}`,
  told: 'update outboxd.submission set report_due = false where id = any($1::uuid[])',
  tell: `update outbox set status = $2, transaction_id = 't' || id, updated_at = now() where id = any($1::bigint[])`,
}

function event(from: string, before: string, after: string): string {
  const causes: Record<string, string> = { queued: 'captured', sending: 'claimed' }
  const cause = causes[after] ?? after
  return `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, actor, who)
    select id, ${before}, '${after}', 1, '${cause}', 'outboxd', 'floor' from ${from}`
}

process.stdout.write('"event":"running"\n')
await Promise.all(Array.from({ length: batchesAtOnce }, follow))
await pool.end()

async function follow(): Promise<void> {
  for (;;) {
    const { ids, rows } = await capture()
    if (rows.length === 0) return
    await run('send', [ids])
    await run('accept', [ids])
    await run('tell', [rows, 'accepted'])
    await run('told', [ids])
    await run('poll', [ids])
    await run('complete', [ids])
    await run('tell', [rows, 'completed'])
    await run('told', [ids])
  }
}

/** Captures and marks in one commit, as the daemon does. */
async function capture(): Promise<{ ids: string[]; rows: string[] }> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const taken = await client.query<{ id: string }>({ name: 'take', text: steps.take, values: [batchSize] })
    const rows = taken.rows.map(({ id }) => id)
    const kept = await client.query<{ id: string }>({ name: 'capture', text: steps.capture, values: [rows] })
    await client.query('commit')
    return { ids: kept.rows.map(({ id }) => id), rows }
  } finally {
    client.release()
  }
}

async function run(step: keyof typeof steps, values: unknown[]): Promise<void> {
  await pool.query({ name: step, text: steps[step], values })
}
