import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { daemonEnvironment, saysRunning } from '../../test/support/daemon.ts'
import { fullestWindow } from '../../test/support/fullestWindow.ts'
import { type Program, startProgram } from '../../test/support/program.ts'
import { noCompileCache, startBenchDaemon } from './harness/benchDaemon.ts'
import { startBenchSandbox } from './harness/benchRun.ts'
import { type BenchDatabase, type BenchPostgres, fillOutbox, startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { printTable, say, sayWhere } from './harness/report.ts'
import { countRefused } from './harness/through.ts'

const options = readOptions(
  'bench:beside: outboxd beside the loop that one would write by hand (pg-boss, a fixed poll interval), at the same sandbox and limit.',
  {
    windows: { default: '5', help: 'windows of a minute that are counted, after four that warm up' },
    kills: { default: '3', help: 'SIGKILLs after that, each with a restart at once' },
    between: { default: '40', help: 'seconds before each SIGKILL' },
    intervals: { default: '5,10,30', help: 'seconds between the polls of the loop, divided by commas' },
  },
)
const [limit, windowMs, warmUpWindows] = [100, 60_000, 4]
const windows = Number(options.windows)
const kills = Number(options.kills)
/** How long the service takes to answer a POST, after it has stored the record. */
const answerMs = 300
/** After the last kill nothing more is sent, and what was on its way then must have ended within this time. */
const settleMs = 240_000
const backlog = 60 * (windows + 20)

interface Lane {
  name: string
  start(database: BenchDatabase, serviceUrl: string): Promise<Program>
  /** Deletes what waits to be sent. */
  dropSql: string
}

const shared = { RATE_LIMIT_REQUESTS: String(limit), RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1_000) }
const lanes: Lane[] = [
  {
    name: 'outboxd',
    start: ({ url: databaseUrl }, serviceUrl) => startBenchDaemon({ databaseUrl, serviceUrl, env: shared }),
    dropSql: `delete from outbox where status = 'new'`,
  },
  ...options.intervals.split(',').map((seconds) => ({
    name: `by hand, polls every ${seconds} s`,
    start: (database: BenchDatabase, serviceUrl: string) => startHandLoop(seconds, database, serviceUrl),
    dropSql: `delete from outbox where status = 'new'; delete from hand.job where name = 'submit' and state = 'created'`,
  })),
]

sayWhere('bench:beside')
say(
  `${limit} requests a minute, processing times log-normal around 20 s (σ 0.6), one process each, more rows than can be sent. ${windows} ` +
    `minutes are counted. Then each process is killed ${kills} times. The service answers a POST after ${answerMs} ms, and ignores idempotency keys, which its interface ` +
    'does not have.',
)
await using postgres = await startBenchPostgres({ max_connections: String(60 * lanes.length) })
const results = await Promise.all(lanes.map((lane, i) => measure(lane, postgres, i)))
printTable(
  [
    '',
    'records/min',
    'requests/record',
    'fullest minute',
    'after kills: 429s',
    'fullest',
    'sent twice',
    'not ended',
    'for a person',
  ],
  results.map(({ name, completed, requests, calm, killed, twice, open, uncertain }) => [
    name,
    (completed / windows).toFixed(1),
    (requests / completed).toFixed(2),
    ...[calm.fullest, killed.refused - calm.refused, killed.fullest, twice, open, uncertain].map(String),
  ]),
)

async function measure({ name, start, dropSql }: Lane, server: BenchPostgres, i: number) {
  const database = await server.createDatabase(`lane${i}`)
  await fillOutbox(database, backlog)
  await using service = await startBenchSandbox({
    ...{ database, limit, windowMs, processingTime: 'lognormal:20:0.6' },
    sandboxEnv: { SANDBOX_IDEMPOTENCY: 'ignore' },
  })
  const fault = { kind: 'delay', delayMs: answerMs, endpoint: 'submit', when: 'after' }
  const headers = { 'content-type': 'application/json' }
  await fetch(`${service.url}/_sandbox/faults`, { method: 'POST', headers, body: JSON.stringify(fault) })
  let program = await start(database, service.url)
  try {
    await pause(warmUpWindows * windowMs)
    const before = await readCounts(database)
    await pause(windows * windowMs)
    const after = await readCounts(database)
    const calm = await readLoad(database)
    for (let kill = 0; kill < kills; kill++) {
      await pause(Number(options.between) * 1_000)
      program.signal('SIGKILL')
      await program.ended()
      program = await start(database, service.url)
    }
    const underWay = await readIdsUnderWay(database)
    const killed = await readLoad(database)
    await database.pool.query(dropSql)
    await pause(settleMs)
    return {
      name,
      completed: after.completed - before.completed,
      requests: after.requests - before.requests,
      ...{ calm, killed },
      twice: await countSentTwice(database),
      ...(await judge(database, underWay)),
    }
  } finally {
    await program.stop()
  }
}

async function startHandLoop(seconds: string, { url }: BenchDatabase, serviceUrl: string): Promise<Program> {
  const script = join(import.meta.dirname, 'harness', 'handLoop.ts')
  const env = daemonEnvironment(url, serviceUrl, { ...shared, ...noCompileCache })
  const loop = startProgram({ script, args: [seconds], env, stderr: 'inherit' })
  await loop.line(saysRunning)
  return loop
}

async function readCounts({ pool }: BenchDatabase): Promise<{ completed: number; requests: number }> {
  const { rows } = await pool.query<{ completed: number; requests: number }>(
    `select (select count(*)::int from outbox where status = 'completed') as completed,
       (select count(*)::int from sandbox.ledger where counted) as requests`,
  )
  return rows[0] ?? { completed: 0, requests: 0 }
}

async function readLoad(database: BenchDatabase): Promise<{ refused: number; fullest: number }> {
  return {
    refused: await countRefused(database),
    fullest: fullestWindow(await readArrivalsMs(database), windowMs),
  }
}

/** Rows that were submitted or may have been, and have not ended. */
async function readIdsUnderWay({ pool }: BenchDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select id::text from outbox o where status not in ('new', 'completed') and exists (
       select from sandbox.ledger l where l.endpoint = 'submit' and l.body like '%record ' || o.id || '"%')`,
  )
  return rows.map(({ id }) => id)
}

async function readArrivalsMs({ pool }: BenchDatabase): Promise<number[]> {
  const { rows } = await pool.query<{ atMs: number }>(
    `select extract(epoch from arrived_at)::float8 * 1000 as "atMs" from sandbox.ledger`,
  )
  return rows.map(({ atMs }) => atMs)
}

/** Records of which the service has more than one transaction. */
async function countSentTwice({ pool }: BenchDatabase): Promise<number> {
  const { rowCount } = await pool.query(
    `select from sandbox.ledger where endpoint = 'submit' and transaction_id is not null
     group by body having count(*) > 1`,
  )
  return rowCount ?? 0
}

async function judge({ pool }: BenchDatabase, ids: readonly string[]): Promise<{ open: number; uncertain: number }> {
  const { rows } = await pool.query<{ open: number; uncertain: number }>(
    `select count(*) filter (where status not in ('completed', 'uncertain', 'failed'))::int as open,
       count(*) filter (where status in ('uncertain', 'failed'))::int as uncertain
     from outbox where id = any($1::bigint[])`,
    [ids],
  )
  return rows[0] ?? { open: 0, uncertain: 0 }
}
