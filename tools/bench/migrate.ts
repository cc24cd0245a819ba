import { setTimeout as after } from 'node:timers/promises'
import type pg from 'pg'
import type { TableCost } from '../../src/ledger/migrations.ts'
import { loadVersion } from '../../test/support/loadVersion.ts'
import { measureMigration, migrationNames } from '../../test/support/measureMigration.ts'
import { createDatabaseOn, openPool, startPostgres } from '../../test/support/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { printTable, say, sayWhere } from './harness/report.ts'

const options = readOptions(
  'bench:migrate: how long each migration of this version blocks the daemons of 0.1.0 on a large ledger.',
  {
    submissions: { default: '1000000', help: 'submissions in the ledger' },
    postgres: { default: '', help: "folder of another PostgreSQL's binaries, such as /usr/lib/postgresql/15/bin" },
  },
)
const submissions = Number(options.submissions)
const rowsAtOnce = 250_000
const everyMs = 10
const largeTables = ['submission', 'submission_event']

sayWhere('bench:migrate')
say(
  `A ledger of 0.1.0 with ${submissions} submissions and four events each; meanwhile two sessions write a step, and read a record, every ${everyMs} ms.`,
)
await using server = await startPostgres(
  { max_wal_size: '4GB', shared_buffers: '512MB' },
  options.postgres || undefined,
)
const url = await createDatabaseOn(server.url, 'ledger')
await loadVersion(url, '0.1.0', 'ledger')
const pool = openPool(url, { max: 4 })
await fillLedgerOfBefore()
const { rows: sizes } = await pool.query(
  `select relname || ' ' || pg_size_pretty(pg_table_size(oid)) as size from pg_class where relname in ('submission', 'submission_event')`,
)
say(`${sizes.map(({ size }) => size).join(', ')}.`)
await migrateAll()
await pool.end()

async function fillLedgerOfBefore(): Promise<void> {
  for (let at = 0; at < submissions; at += rowsAtOnce)
    await pool.query(
      `with kept as (
         insert into outboxd.submission (id, outbox_id, type, key, resource, payload, body, result, recorded_at, captured_at, state, attempt,
           idempotency_key, sent_at, transaction_id, accepted_at, polls, not_done_ms, done_ms, ended_at)
         select gen_random_uuid(), 'b' || n, 'data', case when n % 2 = 0 then 'C' || n % 50000 end, 'data',
           json_build_object('customerId', 'C' || n % 50000, 'text', repeat('x', 900))::text,
           json_build_object('customerId', 'C' || n % 50000, 'data', repeat('x', 900))::text, '{"ok":true}',
           now(), now(), 'completed', 1, gen_random_uuid(), now(), gen_random_uuid()::text, now(), 3, 20000, 60000, now()
         from generate_series($1::bigint + 1, $2::bigint) n
         returning id
       )
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
       select id, step.former, step.latter, 1, step.latter, 'daemon 12345678' from kept, (values
         (null, 'queued'), ('queued', 'sending'), ('sending', 'accepted'), ('accepted', 'completed')) step(former, latter)`,
      [at, Math.min(at + rowsAtOnce, submissions)],
    )
  await pool.query('vacuum (analyze) outboxd.submission, outboxd.submission_event')
}

async function migrateAll(): Promise<void> {
  const { rows } = await pool.query<{ name: string }>('select name from outboxd.migration')
  const client = await pool.connect()
  const lines: string[][] = []
  for (const name of migrationNames.filter((each) => !rows.some((row) => row.name === each))) {
    const over = new AbortController()
    const waits = [probe(step, over.signal), probe(look, over.signal)]
    await after(5 * everyMs)
    const beganMs = performance.now()
    const { tables } = await measureMigration(client, name)
    const ms = performance.now() - beganMs
    over.abort()
    const [writeMs = 0, readMs = 0] = await Promise.all(waits)
    const large = tables.filter(({ table, reads }) => reads > 0 && largeTables.includes(table))
    lines.push([name, large.map(inMessage).join('; '), ...[ms, writeMs, readMs].map((each) => each.toFixed(0))])
  }
  client.release()
  printTable(['migration', 'reads through', 'ms', 'longest write, ms', 'longest read, ms'], lines)
}

/** Repeats `work` until the signal. @returns the longest duration */
async function probe(work: () => Promise<unknown>, signal: AbortSignal): Promise<number> {
  let longestMs = 0
  while (!signal.aborted) {
    const beganMs = performance.now()
    await work()
    longestMs = Math.max(longestMs, performance.now() - beganMs)
    await after(everyMs)
  }
  return longestMs
}

function step(): Promise<pg.QueryResult> {
  return pool.query(
    `with taken as (update outboxd.submission set polls = polls + 1 where outbox_id = $1 returning id)
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
     select id, 'accepted', 'accepted', 1, 'pending', 'daemon 12345678' from taken`,
    [anyOutboxId()],
  )
}

function look(): Promise<pg.QueryResult> {
  return pool.query('select state from outboxd.submission where outbox_id = $1', [anyOutboxId()])
}

function anyOutboxId(): string {
  return `b${1 + Math.floor(Math.random() * submissions)}`
}

function inMessage({ table, reads, indexes }: TableCost): string {
  return `${table} ${reads} ×${indexes > 0 ? ` (indexes: ${indexes})` : ''}`
}
