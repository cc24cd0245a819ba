import { setTimeout as pause } from 'node:timers/promises'
import { backlogCountIntervalMs } from '../../src/daemon/databaseObservation.ts'
import { claimRows } from '../../src/outbox/claimRows.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { startBenchDaemon } from './harness/benchDaemon.ts'
import { buildPackage, deployedFlags } from './harness/build.ts'
import { type BenchDatabase, fillOutbox, startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { percentile, printTable, say, sayWhere, verdict } from './harness/report.ts'
import { startMemoryService } from './harness/startMemoryService.ts'
import { memoryMb } from './harness/usage.ts'

const options = readOptions('bench:backlog: whether a long outbox costs more than a short one.', {
  rows: { default: '1000,100000,1000000', help: 'sizes of the outbox, in rows' },
  seconds: { default: '25', help: 'length of each measurement' },
})
const sizes = options.rows.split(',').map(Number)
const claims = 60
const batchRows = 10
const tenRows = {
  limit: batchRows,
  keyRowsMax: batchRows,
  exceptKeys: [],
  skipped: [],
  types: { known: [], knownToOthers: [] },
}

sayWhere('bench:backlog')
say(
  `The installed package with its default settings, for ${options.seconds} s. A claim locks and marks ${batchRows} rows and ` +
    `commits, ${claims} times before the daemon starts. Growth is from the shortest outbox to the longest.`,
)

interface Measured {
  rows: number
  claimP50Ms: number
  claimP95Ms: number
  runningMs: number
  acceptedMs: number
  residentMb: number
  oursMb: number
  countMs: number
}

await using postgres = await startBenchPostgres()
await using service = await startMemoryService(5_000)
await using built = await buildPackage()
const measured: Measured[] = []
for (const rows of sizes) measured.push(await measure(rows))

const [first, last] = [measured[0], measured.at(-1)]
const line = (what: string, value: (each: Measured) => number, digits: number, judged = true) => {
  const growth = first && last ? value(last) / value(first) : Number.NaN
  return [
    what,
    ...measured.map((each) => value(each).toFixed(digits)),
    growth.toFixed(2),
    judged ? verdict(growth <= 1.5) : '',
  ]
}
printTable(
  ['rows waiting', ...measured.map(({ rows }) => rows.toLocaleString('en')), 'growth', 'at most 1.5'],
  [
    line('claim p50, ms', ({ claimP50Ms }) => claimP50Ms, 2),
    line('claim p95, ms', ({ claimP95Ms }) => claimP95Ms, 2),
    line('running after, ms', ({ runningMs }) => runningMs, 0),
    line('first record accepted after, ms', ({ acceptedMs }) => acceptedMs, 0),
    line('resident memory, MB', ({ residentMb }) => residentMb, 0),
    line('our schemas on disk, MB', ({ oursMb }) => oursMb, 1),
    line('counting what waits, % of a core', countShare, 2, false),
  ],
)
const mostMb = Math.max(...measured.map(({ residentMb }) => residentMb))
const mostCounting = Math.max(...measured.map(countShare))
say(
  `Resident memory under 150 MB: ${verdict(mostMb < 150)}. ` +
    `Counting what waits under 0.2 % of a core: ${verdict(mostCounting < 0.2)}.`,
)

/** Returns what the metric costs the outbox's database, in per cent of a core. */
function countShare({ rows, countMs }: Measured): number {
  return (countMs / backlogCountIntervalMs(rows)) * 100
}

async function measure(rows: number): Promise<Measured> {
  const database = await postgres.createDatabase(`backlog${rows}`)
  await fillOutbox(database, rows + claims * batchRows)
  const claimTimes = await timeClaims(database)
  await database.pool.query('vacuum (analyze) outbox')
  const startMs = performance.now()
  await using daemon = await startBenchDaemon({
    databaseUrl: database.url,
    serviceUrl: service.url,
    main: built.main,
    flags: deployedFlags,
  })
  const runningMs = performance.now() - startMs
  await firstAccepted(database)
  const acceptedMs = performance.now() - startMs
  await pause(Number(options.seconds) * 1000)
  return {
    rows,
    claimP50Ms: percentile(claimTimes, 0.5),
    claimP95Ms: percentile(claimTimes, 0.95),
    runningMs,
    acceptedMs,
    residentMb: memoryMb(daemon.pid).residentMb,
    oursMb: await readOursMb(database),
    countMs: await meanCountMs(database),
  }
}

/** Returns the durations of the daemon's own claims in milliseconds. Claimed rows stay claimed. */
async function timeClaims({ pool }: BenchDatabase): Promise<number[]> {
  const outbox = new Outbox(pool, 'outbox', 1_000_000, pool)
  await mayHaveWaitingRows(outbox) // looks up the table's columns, once
  const times: number[] = []
  for (let i = 0; i < claims; i++) {
    const startMs = performance.now()
    await using claimed = await claimRows(outbox, tenRows)
    const records = await claimed.readAsManyAsFit()
    times.push(performance.now() - startMs)
    const taken = { state: 'completed', transactionId: null, errorCode: null, error: null } as const
    await claimed.markReturningUnmarkedIds(records.map(({ outboxId }) => ({ outboxId, ...taken })))
  }
  return times.slice(5) // the first ones open connections and warm caches
}

async function firstAccepted({ pool }: BenchDatabase): Promise<void> {
  for (;;) {
    const { rowCount } = await pool.query('select from outboxd.submission where accepted_at is not null limit 1')
    if (rowCount) return
    await pause(20)
  }
}

async function readOursMb({ pool }: BenchDatabase): Promise<number> {
  const { rows } = await pool.query<{ ours: number }>(
    `select sum(pg_total_relation_size(c.oid))::float8 as ours
     from pg_class c where c.relkind = 'r' and c.relnamespace::regnamespace::text in ('outboxd', 'pgboss')`,
  )
  return (rows[0]?.ours ?? 0) / 2 ** 20
}

/** Returns how long a count for the metric outbox_waiting takes on average. */
async function meanCountMs({ pool }: BenchDatabase): Promise<number> {
  const { rows } = await pool.query<{ ms: number }>(
    `select mean_exec_time as ms from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database()) and query like '%as waiting,%'
     order by calls desc limit 1`,
  )
  return rows[0]?.ms ?? Number.NaN
}
