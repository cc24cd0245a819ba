import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { daemonEnvironment, saysRunning } from '../../test/support/daemon.ts'
import { type Program, startProgram } from '../../test/support/program.ts'
import { noCompileCache, startBenchDaemon } from './harness/benchDaemon.ts'
import { buildPackage, deployedFlags } from './harness/build.ts'
import { type BenchDatabase, fillOutbox, startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { printTable, say, sayWhere, verdict } from './harness/report.ts'
import { startMemoryService } from './harness/startMemoryService.ts'
import { memoryMb, readUsage, type Usage } from './harness/usage.ts'

const options = readOptions(
  'bench:engine: records per second (one submission, one poll each) if no limit holds the daemon back. With --burst, seconds until rows that come at once are completed.',
  {
    records: { default: '12000', help: 'records' },
    only: { default: '', help: 'only runs whose name contains this' },
    burst: { default: '', help: 'instead: this number of rows in one INSERT, at a limit of 10,000 requests in 6 s' },
    daemons: { default: '1', help: 'with --burst: daemons' },
    keys: { default: '0', help: 'with --burst: keys of the rows' },
    'capture-window': { default: '5000', help: 'CAPTURE_WINDOW' },
    profile: { default: '', help: 'folder for a CPU profile of the daemon' },
    statements: { default: false, help: 'also lists the statements and their time' },
  },
)
const records = Number(options.records)
const processingMs = 200
const unlimited = {
  RATE_LIMIT_REQUESTS: '10000000',
  MAX_IN_FLIGHT: '128',
  CAPTURE_WINDOW: options['capture-window'],
}

interface Run {
  name: string
  start(database: BenchDatabase, serviceUrl: string): Promise<Program>
}

const oneByOne = 'plain work(), a job at a time'
const inBatches = 'plain work(), batches of 64'
await using built = await buildPackage()
const profiling = options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : []
const startOutboxd =
  (how: { main?: string; flags?: readonly string[] }): Run['start'] =>
  ({ url }, serviceUrl) =>
    startBenchDaemon({
      ...how,
      databaseUrl: url,
      serviceUrl,
      env: unlimited,
      flags: [...(how.flags ?? []), ...profiling],
    })

const runs: Run[] = [
  { name: 'outboxd', start: startOutboxd({ main: built.main, flags: deployedFlags }) },
  { name: 'outboxd, from its source', start: startOutboxd({}) },
  { name: oneByOne, start: (database, url) => startLoop('plainLoop.ts', 'one', database, url) },
  { name: inBatches, start: (database, url) => startLoop('plainLoop.ts', 'batch', database, url) },
  { name: 'floor: the same durable writes', start: (database, url) => startLoop('floorLoop.ts', '32', database, url) },
]

interface Measured {
  perSecond: number
  daemonCpuMs: number
  postgresCpuMs: number
  peakMb: number
}

sayWhere('bench:engine')
if (options.burst !== '') {
  await measureBurst(Number(options.burst), Number(options.daemons), Number(options.keys))
  process.exit(0)
}
say(
  `${records} records, processing ${processingMs} ms, 128 requests at once, no limit. Measured between 10 % and 90 % of the ` +
    'records.',
)
const results: { name: string; measured: Measured }[] = []
for (const run of runs) {
  if (options.only && !run.name.includes(options.only)) continue
  results.push({ name: run.name, measured: await measure(run) })
}
const best = results[0]?.measured.perSecond ?? 0
printTable(
  ['', 'records/s', 'outboxd is', 'CPU ms/record', 'of it Postgres', 'peak MB'],
  results.map(({ name, measured: { perSecond, daemonCpuMs, postgresCpuMs, peakMb } }) => [
    name,
    perSecond.toFixed(0),
    `${(best / perSecond).toFixed(1)} times`,
    (daemonCpuMs + postgresCpuMs).toFixed(2),
    postgresCpuMs.toFixed(2),
    peakMb.toFixed(0),
  ]),
)
const cpuOf = (name: string) => {
  const measured = results.find((result) => result.name === name)?.measured
  return measured === undefined ? Number.NaN : measured.daemonCpuMs + measured.postgresCpuMs
}
const share = cpuOf(inBatches) / cpuOf('outboxd')
if (!Number.isNaN(share))
  say(
    `The plain loop in batches takes ${share.toFixed(2)} times the CPU of outboxd; at least 2.5 times: ${verdict(share >= 2.5)}. ` +
      `Under 200 MB: ${verdict((results[0]?.measured.peakMb ?? 0) < 200)}.`,
  )

async function measure(run: Run): Promise<Measured> {
  await using postgres = await startBenchPostgres(
    options.statements ? { 'pg_stat_statements.track_planning': 'on' } : {},
  )
  await using service = await startMemoryService(processingMs)
  const database = await postgres.createDatabase('engine')
  await fillOutbox(database, records)
  await using daemon = await run.start(database, service.url)
  const usage = () => readUsage(daemon.pid, postgres.server.pid)
  const from = await reached(database, 0.1 * records, usage)
  const until = await reached(database, 0.9 * records, usage)
  const count = until.completed - from.completed
  const { peakMb } = memoryMb(daemon.pid)
  await reached(database, records, usage)
  if (options.statements) await printStatements(database)
  return {
    perSecond: (count * 1000) / (until.usage.atMs - from.usage.atMs),
    daemonCpuMs: (until.usage.daemonCpuMs - from.usage.daemonCpuMs) / count,
    postgresCpuMs: (until.usage.postgresCpuMs - from.usage.postgresCpuMs) / count,
    peakMb,
  }
}

/** Measures from the COMMIT of rows beside running daemons until all rows say that they are completed. */
async function measureBurst(rows: number, daemons: number, keys: number): Promise<void> {
  await using postgres = await startBenchPostgres()
  await using service = await startMemoryService(processingMs)
  const database = await postgres.createDatabase('burst')
  const env = { ...unlimited, RATE_LIMIT_REQUESTS: '10000', RATE_LIMIT_WINDOW_SECONDS: '6' }
  await using running = new AsyncDisposableStack()
  const started: Program[] = []
  for (let n = 0; n < daemons; n++)
    started.push(
      running.use(
        await startBenchDaemon({ databaseUrl: database.url, serviceUrl: service.url, env, flags: profiling }),
      ),
    )
  await database.pool.query('vacuum (analyze) outbox')
  await database.pool.query('select pg_stat_statements_reset()')
  const usage = () => started.map(({ pid }) => readUsage(pid, postgres.server.pid))
  const before = usage()
  const startMs = performance.now()
  await fillOutbox(database, rows, { keys, analyzes: false })
  await reached(database, rows, () => readUsage(started[0]?.pid ?? 0, postgres.server.pid))
  const seconds = (performance.now() - startMs) / 1_000
  const after = usage()
  const cpuMs = after.reduce((sum, each, n) => sum + each.daemonCpuMs - (before[n]?.daemonCpuMs ?? 0), 0)
  const postgresCpuMs = (after[0]?.postgresCpuMs ?? 0) - (before[0]?.postgresCpuMs ?? 0)
  const { rows: sums } = await database.pool.query<{ calls: number; blocks: number }>(
    `select sum(calls)::float8 as calls, sum(shared_blks_hit + shared_blks_read)::float8 as blocks from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database())`,
  )
  const { calls, blocks } = sums[0] as (typeof sums)[0]
  printTable(
    ['rows', 'daemons', 'keys', 'seconds', 'CPU ms/record', 'of it Postgres', 'statements/record', 'blocks/record'],
    [
      [
        rows,
        daemons,
        keys,
        seconds.toFixed(1),
        ((cpuMs + postgresCpuMs) / rows).toFixed(2),
        (postgresCpuMs / rows).toFixed(2),
        (calls / rows).toFixed(2),
        (blocks / rows).toFixed(0),
      ].map(String),
    ],
  )
  if (options.statements) await printStatements(database)
}

/** Waits until this many outbox rows are completed, which is what the ERP sees, and where both measurements end. */
async function reached({ pool }: BenchDatabase, count: number, usage: () => Usage) {
  const giveUpAtMs = performance.now() + 600_000
  for (;;) {
    const { rows } = await pool.query<{ completed: number }>(
      `select count(*)::int as completed from outbox where status = 'completed'`,
    )
    const completed = rows[0]?.completed ?? 0
    if (completed >= count) return { completed, usage: usage() }
    if (performance.now() > giveUpAtMs) throw new Error(`only ${completed} of ${count} records came through in 10 min`)
    await pause(250)
  }
}

async function startLoop(file: string, mode: string, { url }: BenchDatabase, serviceUrl: string): Promise<Program> {
  const script = join(import.meta.dirname, 'harness', file)
  const env = daemonEnvironment(url, serviceUrl, { ...unlimited, ...noCompileCache })
  const loop = startProgram({ script, args: [mode], env, stderr: 'inherit' })
  await loop.line(saysRunning)
  return loop
}

/** Prints which statements take the server's time. */
async function printStatements({ pool }: BenchDatabase): Promise<void> {
  const { rows } = await pool.query<Record<string, string>>(
    `select round(total_exec_time)::text as total, round(total_plan_time)::text as planning, calls::text,
       round(mean_exec_time::numeric, 2)::text as mean,
       rows::text, (shared_blks_hit + shared_blks_read)::text as blocks, left(regexp_replace(query, '\\s+', ' ', 'g'), 110) as query
     from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())
     order by total_exec_time + total_plan_time desc limit 30`,
  )
  printTable(
    ['statement', 'ms', 'planning', 'calls', 'ms each', 'rows', 'blocks'],
    rows.map((row) =>
      ['query', 'total', 'planning', 'calls', 'mean', 'rows', 'blocks'].map((column) => row[column] ?? ''),
    ),
  )
}
