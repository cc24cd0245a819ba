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
import { printStatements, readStatements } from './harness/statements.ts'
import { memoryMb, readUsage, type Usage } from './harness/usage.ts'

const options = readOptions(
  'bench:engine: records per second (one submission, one poll each) if no limit holds the daemon back, beside a plain loop of pg-boss.',
  {
    records: { default: '12000', help: 'records' },
    profile: { default: '', help: 'folder for a CPU profile of the daemon' },
    statements: { default: false, help: 'also lists the statements and their time' },
  },
)
const records = Number(options.records)
const processingMs = 200
const unlimited = { RATE_LIMIT_REQUESTS: '10000000', MAX_IN_FLIGHT: '128', CAPTURE_WINDOW: '5000' }
const profiling = options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : []

interface Measured {
  perSecond: number
  daemonCpuMs: number
  postgresCpuMs: number
  peakMb: number
}

sayWhere('bench:engine')
say(
  `${records} records, processing ${processingMs} ms, 128 requests at once, no limit. Measured between 10 % and 90 % of the ` +
    'records. The plain loop fetches jobs in batches of 64.',
)
await using built = await buildPackage()
const daemon = await measure((databaseUrl, serviceUrl) =>
  startBenchDaemon({
    databaseUrl,
    serviceUrl,
    main: built.main,
    env: unlimited,
    flags: [...deployedFlags, ...profiling],
  }),
)
const loop = await measure(startPlainLoop)
printTable(
  ['', 'records/s', 'outboxd is', 'CPU ms/record', 'of it Postgres', 'peak MB'],
  [
    ['outboxd', ...figures(daemon)],
    ['plain work()', ...figures(loop)],
  ],
)
const share = cpuOf(loop) / cpuOf(daemon)
say(
  `The plain loop takes ${share.toFixed(2)} times the CPU of outboxd; at least 2.5 times: ${verdict(share >= 2.5)}. ` +
    `Under 200 MB: ${verdict(daemon.peakMb < 200)}.`,
)

function figures(measured: Measured): string[] {
  return [
    measured.perSecond.toFixed(0),
    `${(daemon.perSecond / measured.perSecond).toFixed(1)} times`,
    cpuOf(measured).toFixed(2),
    measured.postgresCpuMs.toFixed(2),
    measured.peakMb.toFixed(0),
  ]
}

function cpuOf({ daemonCpuMs, postgresCpuMs }: Measured): number {
  return daemonCpuMs + postgresCpuMs
}

async function measure(start: (databaseUrl: string, serviceUrl: string) => Promise<Program>): Promise<Measured> {
  await using postgres = await startBenchPostgres()
  await using service = await startMemoryService(processingMs)
  const database = await postgres.createDatabase('engine')
  await fillOutbox(database, records)
  await using program = await start(database.url, service.url)
  const usage = () => readUsage(program.pid, postgres.server.pid)
  const from = await reached(database, 0.1 * records, usage)
  const until = await reached(database, 0.9 * records, usage)
  const count = until.completed - from.completed
  const { peakMb } = memoryMb(program.pid)
  await reached(database, records, usage)
  if (options.statements) printStatements('statement', (await readStatements(database)).slice(0, 30))
  return {
    perSecond: (count * 1000) / (until.usage.atMs - from.usage.atMs),
    daemonCpuMs: (until.usage.daemonCpuMs - from.usage.daemonCpuMs) / count,
    postgresCpuMs: (until.usage.postgresCpuMs - from.usage.postgresCpuMs) / count,
    peakMb,
  }
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

async function startPlainLoop(databaseUrl: string, serviceUrl: string): Promise<Program> {
  const script = join(import.meta.dirname, 'harness', 'plainLoop.ts')
  const env = daemonEnvironment(databaseUrl, serviceUrl, { ...unlimited, ...noCompileCache })
  const program = startProgram({ script, env, stderr: 'inherit' })
  await program.line(saysRunning)
  return program
}
