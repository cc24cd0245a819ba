import { setTimeout as pause } from 'node:timers/promises'
import { startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { percentile, printTable, say, sayWhere, verdict } from './harness/report.ts'
import { runBudget } from './harness/runBudget.ts'

const options = readOptions('bench:budget: how well the poll schedule uses the budget, and how soon it sees an end.', {
  windows: { default: '60', help: 'windows under full load; the first third warms up' },
  idle: { default: '20', help: 'windows with few records' },
  times: { default: '', help: 'only distributions whose name contains this' },
})
const windowMs = 6_000
const compression = 60_000 / windowMs
const limit = 100
const windows = Number(options.windows)
const warmUpWindows = Math.round(windows / 3)
/** Connections of the daemon, the sandbox and the benchmark. All runs share one server. */
const connectionsPerRun = 40

/** Processing times in the sandbox's notation, in seconds of compressed time. `isSmooth`: its idle delay is judged. */
const distributions = [
  { name: 'constant 30 s ± 10 %', processingTime: 'constant:3:0.1', isSmooth: true },
  { name: 'log-normal 20 s, σ 0.6', processingTime: 'lognormal:2:0.6', isSmooth: true },
  { name: 'humps 2-5 s, 120-300 s', processingTime: 'humps:0.8:0.2-0.5:12-30', isSmooth: false },
  { name: 'exponential 20 s', processingTime: 'exponential:2', isSmooth: true },
].filter(({ name }) => name.includes(options.times))

sayWhere('bench:budget')
say(
  `Compressed ${compression} times (${limit} requests in ${windowMs / 1000} s); delays are in uncompressed seconds. First ` +
    `${windows} saturated windows, a third of them not counted; then ${options.idle} idle ones with 6 records a minute.`,
)
await using postgres = await startBenchPostgres({ max_connections: String(connectionsPerRun * distributions.length) })
const done = await Promise.all(distributions.map(measure))
printTable(
  ['processing time', 'records/min', 'polls/record', 'delay p50', 'p95', 'idle p50', 'p95 (s)', '429s'],
  done.map(({ name, perWindow, saturated, idle, refused }) => [
    name,
    perWindow.toFixed(1),
    saturated.pollsPerRecord.toFixed(2),
    ...[0.5, 0.95].map((share) => delay(saturated.delaysMs, share)),
    ...[0.5, 0.95].map((share) => delay(idle?.delaysMs ?? [], share)),
    String(refused),
  ]),
)
judge('Saturated at least 48 of 50', ({ perWindow }) => perWindow >= 48)
judge(
  'Idle p95 of the delay under 5 s, but for humps',
  ({ isSmooth, idle }) => !isSmooth || idle === null || percentile(idle.delaysMs, 0.95) * compression < 5_000,
)
judge('No 429', ({ refused }) => refused === 0)

/** Starts the runs one after the other, because their start-up would otherwise keep the machine busy. */
async function measure(distribution: (typeof distributions)[0], i: number) {
  await pause(i * 500)
  const figures = await runBudget({
    database: await postgres.createDatabase(`run${i}`),
    limit,
    windowMs,
    processingTime: distribution.processingTime,
    warmUpWindows,
    countedWindows: windows - warmUpWindows,
    idleWindows: Number(options.idle),
  })
  return { ...distribution, ...figures }
}

function delay(compressedMs: number[], share: number): string {
  return compressedMs.length === 0 ? '' : ((percentile(compressedMs, share) * compression) / 1000).toFixed(1)
}

function judge(what: string, isReached: (run: (typeof done)[0]) => boolean): void {
  const missed = done.filter((run) => !isReached(run)).map(({ name }) => name)
  say(`${what}: ${verdict(missed.length === 0)}${missed.length > 0 ? ` (${missed.join('; ')})` : ''}.`)
}
