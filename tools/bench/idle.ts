import { setTimeout as pause } from 'node:timers/promises'
import { sourceMain } from '../../test/support/program.ts'
import { startBenchDaemon } from './harness/benchDaemon.ts'
import { buildPackage, deployedFlags } from './harness/build.ts'
import { type BenchDatabase, fillOutbox, startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { printTable, say, sayWhere, verdict } from './harness/report.ts'
import { startMemoryService } from './harness/startMemoryService.ts'
import { cpuMs, memoryMb } from './harness/usage.ts'

const options = readOptions('bench:idle: what a daemon costs that has nothing to do.', {
  seconds: { default: '60', help: 'length of the measurement' },
  statements: { default: false, help: 'also lists the statements and their time' },
})
const seconds = Number(options.seconds)
const settleMs = 10_000

sayWhere('bench:idle')
say(
  `A daemon that has sent 100 records and then has nothing to do, over ${seconds} s. Statements include those of pg-boss, ` +
    'BEGIN and COMMIT. Installed: the bundle, started as deploy/outboxd.service does.',
)

await using postgres = await startBenchPostgres()
await using service = await startMemoryService(200)
await using built = await buildPackage()
const [installed, checkout] = await Promise.all([
  measure({ name: 'installed', main: built.main, flags: deployedFlags }),
  measure({ name: 'checkout', main: sourceMain, flags: [] }),
])
const row = (what: string, show: (idle: Idle) => string, limit: string, reached: (idle: Idle) => boolean) => [
  what,
  show(installed),
  show(checkout),
  limit,
  verdict(reached(installed)),
]
printTable(
  ['', 'installed', 'checkout', 'to reach', 'installed'],
  [
    row(
      'CPU, share of a core',
      ({ share }) => `${(share * 100).toFixed(2)} %`,
      'under 1 %',
      ({ share }) => share < 0.01,
    ),
    row(
      'resident memory',
      ({ residentMb }) => `${residentMb.toFixed(0)} MB`,
      'under 120 MB',
      (i) => i.residentMb < 120,
    ),
    row(
      'statements a second',
      ({ perSecond }) => perSecond.toFixed(1),
      'at most 3',
      ({ perSecond }) => perSecond <= 3,
    ),
    row(
      'connections',
      (idle) => String(idle.connections),
      'at most 6',
      (idle) => idle.connections <= 6,
    ),
  ],
)
if (options.statements)
  printTable(
    ['statement', 'a second'],
    installed.statements.map(({ query, calls }) => [query, (calls / seconds).toFixed(2)]),
  )

interface Idle {
  share: number
  residentMb: number
  perSecond: number
  /** The most at once. */
  connections: number
  statements: { query: string; calls: number }[]
}

async function measure({ name, ...how }: { name: string; main: string; flags: readonly string[] }): Promise<Idle> {
  const database = await postgres.createDatabase(name)
  await fillOutbox(database, 100)
  await using daemon = await startBenchDaemon({
    databaseUrl: database.url,
    serviceUrl: service.url,
    ...how,
    env: { RATE_LIMIT_REQUESTS: '10000' },
  })
  while ((await countUnfinished(database)) > 0) await pause(500)
  await pause(settleMs)
  await forgetStatements(database)
  const cpuBeforeMs = cpuMs(daemon.pid)
  const startedMs = performance.now()
  let connections = 0
  while (performance.now() - startedMs < seconds * 1000) {
    await pause(1000)
    connections = Math.max(connections, await countConnections(database))
  }
  const share = (cpuMs(daemon.pid) - cpuBeforeMs) / (performance.now() - startedMs)
  const statements = await rowReadStatements(database)
  const calls = statements.reduce((sum, each) => sum + each.calls, 0)
  return { share, residentMb: memoryMb(daemon.pid).residentMb, perSecond: calls / seconds, connections, statements }
}

async function countUnfinished({ pool }: BenchDatabase): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from outbox where status <> 'completed'`,
  )
  return rows[0]?.count ?? 0
}

async function countConnections({ pool }: BenchDatabase): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name like 'outboxd%'`,
  )
  return rows[0]?.count ?? 0
}

async function forgetStatements({ pool }: BenchDatabase): Promise<void> {
  await pool.query('select pg_stat_statements_reset(0, oid, 0) from pg_database where datname = current_database()')
}

async function rowReadStatements({ pool }: BenchDatabase): Promise<{ query: string; calls: number }[]> {
  const { rows } = await pool.query<{ query: string; calls: number }>(
    `select left(regexp_replace(query, '\\s+', ' ', 'g'), 110) as query, calls::float8 as calls from pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database())
       and toplevel and query not like '%pg_stat_statements%'
       and query not like 'select count(*)::int as count from pg_stat_activity%' -- ours: countConnections
     order by calls desc`,
  )
  return rows
}
