import { type BenchPostgres, startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { printTable, say, sayWhere, verdict } from './harness/report.ts'
import { runBurst } from './harness/runBurst.ts'
import { type ChosenRun, chooseRuns, processingTimes } from './harness/schedules.ts'

const options = readOptions(
  'bench:burst: time from commit to known outcome if records come at once: the learned schedule beside plain schedules and the oracle.',
  {
    records: { default: '30,100,300,1000', help: 'sizes of the batches, sent one after the other' },
    idle: { default: '20', help: 'windows of a few records before the first batch, in which the schedule learns' },
    'at-once': { default: '7', help: 'runs at a time' },
    only: { default: '', help: 'only schedules whose name contains one of these words, divided by commas' },
    times: { default: '', help: 'only distributions whose name contains one of these words, divided by commas' },
  },
)
const windowMs = 6_000
const compression = 60_000 / windowMs
const limit = 100
const batches = options.records.split(',').map(Number)
const atOnce = Number(options['at-once'])
/** Connections of the daemon, the sandbox and the benchmark. All runs share one server. */
const connectionsEach = 40
/** Other schedules do not learn. */
const plainIdleWindows = 3

const runs = chooseRuns(options)

sayWhere('bench:burst')
say(
  `Time compressed ${compression} times: ${limit} requests in ${windowMs / 1000} s, processing times a tenth; the figures are uncompressed ` +
    `seconds from the commit of a record to its end in the ledger: mean / p50 / p95 / the last, of N records committed at once. ` +
    `Each line has a daemon, a sandbox and a database of its own, ${atOnce} at a time on one PostgreSQL; its batches come one after ` +
    `the other, the first after ${options.idle} windows of 6 records (the plain schedules: ${plainIdleWindows}). The plain schedules run in the same ` +
    'daemon: triggers in the database put their times in the place of its own. The oracle polls the moment it is done: nobody can.',
)
await using postgres = await startBenchPostgres({ max_connections: String(connectionsEach * atOnce + 20) })
const turns = Array.from({ length: atOnce }, () => Promise.resolve())
const done = await Promise.all(runs.map((run, i) => inTurn(postgres, run, i)))
for (const distribution of Object.keys(processingTimes)) {
  const own = done.filter((each) => each.distribution === distribution)
  if (own.length === 0) continue
  printTable(
    [distribution, ...batches.map((records) => `N = ${records}`), 'polls/record', '429s'],
    own.map(({ schedule, figures }) => [
      schedule,
      ...figures.batches.map((each) => inSeconds(each.meanMs, each.p50Ms, each.p95Ms, each.lastMs)),
      figures.batches.map(({ pollsPerRecord }) => pollsPerRecord.toFixed(2)).join(' / '),
      String(figures.refused),
    ]),
  )
}
say(`No 429: ${verdict(done.every(({ figures }) => figures.refused === 0))}.`)

type Done = ChosenRun & { figures: Awaited<ReturnType<typeof runBurst>> }

async function inTurn(server: BenchPostgres, run: ChosenRun, i: number): Promise<Done> {
  const place = i % atOnce
  const measuring = (turns[place] ?? Promise.resolve()).then(() => measure(server, run, i))
  turns[place] = measuring.then(() => {})
  return measuring
}

async function measure(server: BenchPostgres, run: ChosenRun, i: number): Promise<Done> {
  const database = await server.createDatabase(`run${i}`)
  const idleWindows = run.schedule === 'learned' ? Number(options.idle) : plainIdleWindows
  return { ...run, figures: await runBurst({ ...run, database, limit, windowMs, batches, idleWindows }) }
}

function inSeconds(...compressedMs: number[]): string {
  return compressedMs.map((ms) => ((ms * compression) / 1000).toFixed(0)).join(' / ')
}
