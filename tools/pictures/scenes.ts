import type pg from 'pg'
import { startSandbox } from '../../src/sandbox/startSandbox.ts'
import { fillRequestHours } from '../../test/console/browser/past.ts'
import { daemonEnvironment, startDaemonProcess } from '../../test/support/daemon.ts'
import { createDatabaseOn, migrateAll, openPool, startPostgres } from '../../test/support/postgres.ts'
import { type Program, startProgram } from '../../test/support/program.ts'
import { until } from '../../test/support/until.ts'
import { fillLedger } from '../bench/harness/fillLedger.ts'

/** Three installations on one server: one without a record, one with one, one with hundreds. */
export interface Scenes extends AsyncDisposable {
  /** The variables of each installation. */
  readonly installations: Record<'empty' | 'one' | 'hundreds', Record<string, string>>
  /** The orders of records whose pages are looked at. */
  readonly orders: typeof orders
  /** Kills the daemons. */
  killDaemons(): Promise<void>
  stopDatabase(): Promise<void>
}

const orders = {
  rejected: 'SO-2026-005130',
  failed: 'SO-2026-005131',
  uncertain: 'SO-2026-005132',
  completed: 'SO-2026-005133',
} as const

const settings = { RATE_LIMIT_REQUESTS: '1000', REQUEST_TIMEOUT_SECONDS: '5', INSTALLATION_NAME: 'Test' }

export async function startScenes(): Promise<Scenes> {
  await using stack = new AsyncDisposableStack()
  const server = await startPostgres()
  let isUp = true
  const stopDatabase = async () => {
    if (isUp) await server.stop()
    isUp = false
  }
  stack.defer(stopDatabase)
  const sandbox = await startSandbox({
    databaseUrl: await createDatabaseOn(server.url, 'service'),
    port: 0,
    rateLimitRequests: 100_000,
    processingTime: 'lognormal:2:0.5',
  })
  stack.defer(() => sandbox.close())
  const open = async (name: string) => {
    const url = await createDatabaseOn(server.url, name)
    await migrateAll(url)
    const pool = openPool(url)
    stack.defer(() => pool.end())
    return { url, pool, env: daemonEnvironment(url, sandbox.url, settings) }
  }
  const [empty, one, hundreds] = [await open('empty'), await open('one'), await open('hundreds')]
  await fillPast(hundreds)
  const daemons: Program[] = []
  for (const { env } of [one, hundreds]) daemons.push(stack.use(await startDaemonProcess(env)))
  const dropped = { kind: 'drop', when: 'after', endpoint: 'submit', bodyContains: 'the line is cut', times: 4 }
  const fault = { method: 'POST', body: JSON.stringify(dropped), headers: { 'content-type': 'application/json' } }
  await fetch(`${sandbox.url}/_sandbox/faults`, fault)
  await insert(one.pool, [order(orders.rejected, { amount: 10.125 })])
  await insert(hundreds.pool, manyOrders())
  await until(
    () => countWaiting(one.pool),
    (count) => count === 0,
  )
  await until(
    () => countWaiting(hundreds.pool),
    (count) => count === 0,
  )
  await spread(hundreds.pool)
  const owned = stack.move()
  return {
    installations: { empty: empty.env, one: one.env, hundreds: hundreds.env },
    orders,
    async killDaemons() {
      for (const daemon of daemons) daemon.signal('SIGKILL')
      await Promise.all(daemons.map((daemon) => daemon.ended()))
    },
    stopDatabase,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Starts `outboxd console`. @returns it and its address */
export async function startConsoleOf(env: Record<string, string>): Promise<{ program: Program; origin: string }> {
  const program = startProgram({ args: ['console', '--port', '0', '--json', '--as', 'on call'], env })
  const line = await program.line((each) => each.startsWith('{'))
  return { program, origin: (JSON.parse(line) as { url: string }).url }
}

const order = (key: string, more: Record<string, unknown>) => ({
  key,
  payload: { customerId: 'C-7010', orderDate: '2026-11-28T10:00:00Z', amount: 1250.5, field2: key, ...more },
})

type Order = ReturnType<typeof order>

/** What an operator finds in the morning: a few causes with many records, and many causes with few. */
function manyOrders(): Order[] {
  const kinds: [count: number, more: (n: number) => Record<string, unknown>][] = [
    [120, () => ({})],
    [36, () => ({ customerId: 'UNKNOWN' })],
    [28, (n) => ({ field2: `fail:CREDIT_LIMIT ${n}` })],
    [20, (n) => ({ amount: 1_000.125 + n })],
    [11, (n) => ({ customerId: `C-2026-${1_000 + n}-B` })],
    [4, (n) => ({ field2: `fail:E001 ${n}` })],
    [3, (n) => ({ field2: `the line is cut ${n}` })],
    [2, () => ({ orderDate: '2026-11-28 10:00' })],
  ]
  const many = kinds.flatMap(([count, more]) => Array.from({ length: count }, (_, n) => more(n)))
  return [
    ...many.map((more, n) =>
      order(`SO-2026-${String(4_800 + n).padStart(6, '0')}`, {
        customerId: `C-${7_000 + ((n * 37) % 900)}`,
        amount: ((n * 7_919) % 2_500_000) / 100,
        ...more,
      }),
    ),
    order(orders.rejected, { customerId: 'UNKNOWN', amount: 10_068.49 }),
    order(orders.failed, { field2: 'fail:CREDIT_LIMIT' }),
    order(orders.uncertain, { field2: 'the line is cut' }),
    order(orders.completed, {}),
  ]
}

async function insert(pool: pg.Pool, all: readonly Order[]): Promise<void> {
  await pool.query(
    `insert into outbox (type, key, payload) select 'data', each ->> 'key', each -> 'payload' from jsonb_array_elements($1) each`,
    [JSON.stringify(all)],
  )
}

async function countWaiting(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from outbox where status in ('new', 'queued', 'sending', 'accepted')`,
  )
  return rows[0]?.count ?? 0
}

/** Spreads over an hour what was sent in seconds, but for the records whose pages are looked at. */
async function spread(pool: pg.Pool): Promise<void> {
  await pool.query(
    `update outboxd.submission set ended_at = ended_at - ago, recorded_at = recorded_at - ago, captured_at = captured_at - ago,
       sent_at = sent_at - ago, accepted_at = accepted_at - ago
     from (select id, seq * 7919 % 3400 * interval '1 s' as ago from outboxd.submission) spread
     where spread.id = submission.id and key <> all($1)`,
    [Object.values(orders)],
  )
}

/** An hour and 28 days of requests, and what they sent, so that the charts and targets show something. */
async function fillPast(database: { url: string; pool: pg.Pool }): Promise<void> {
  await fillLedger(database, { first: 1_000_000, count: 600, oldestDays: 0.001, newestDays: 0 })
  await database.pool.query(
    `update outboxd.submission set polls = 2, not_done_ms = 500, done_ms = 2000 + seq % 7 * 400,
       key = 'SO-2026-' || lpad(seq::text, 6, '0'), recorded_at = ended_at - (2 + seq % 11 + 6 * abs(sin(seq / 60.0))) * interval '1 s',
       payload = json_build_object('customerId', 'C-' || 7000 + seq % 900, 'amount', seq * 7919 % 2500000 / 100.0)::text`,
  )
  await fillRequestHours(database.pool, 2)
  await database.pool.query(
    `insert into outboxd.request_count (minute, kind, instance_id, requests, failed, answered, slow)
     select date_trunc('minute', now()) - n * interval '1 minute', kind, gen_random_uuid(), used, 0, used, n % 23 / 22
     from generate_series(1, 70) n, unnest(array['submit', 'status']) kind,
       lateral (select (280 + 170 * sin(n / 9.0) + n * 37 % 50)::int as used) made on conflict do nothing`,
  )
}
