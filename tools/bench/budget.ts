import { setTimeout as pause } from 'node:timers/promises'
import { type BenchPostgres, startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { percentile, printTable, say, sayWhere, verdict } from './harness/report.ts'
import { type BudgetFigures, runBudget } from './harness/runBudget.ts'
import { type ChosenRun, chooseRuns, processingTimes } from './harness/schedules.ts'

const options = readOptions(
  'bench:budget: how well the budget is used: the learned schedule beside plain schedules and the oracle.',
  {
    windows: { default: '60', help: 'windows under full load; the first third warms up' },
    idle: { default: '20', help: 'windows with few records' },
    only: { default: '', help: 'only schedules whose name contains one of these words, divided by commas' },
    times: { default: '', help: 'only distributions whose name contains one of these words, divided by commas' },
  },
)
const windowMs = 6_000
const compression = 60_000 / windowMs
const limit = 100
const windows = Number(options.windows)
/** Schedules that do not learn need fewer windows. `plainAtOnce` of them run at a time. */
const [plainWindows, plainIdle, plainAtOnce] = [Math.min(windows, 21), Math.min(Number(options.idle), 12), 10]
/** Connections of the daemon, the sandbox and the benchmark. All runs share one server. */
const connectionsPerLane = 40

const runs = chooseRuns(options)

sayWhere('bench:budget')
say(
  `Compressed ${compression} times (${limit} requests in ${windowMs / 1000} s); delays are in uncompressed seconds. First ` +
    `${windows} saturated windows (the plain schedules ${plainWindows}), a third of them not counted; then ${options.idle} (${plainIdle}) ` +
    `idle ones with 6 records a minute.`,
)
await using postgres = await startBenchPostgres({ max_connections: String(connectionsPerLane * runs.length) })
const plainTurns = Array.from({ length: plainAtOnce }, () => Promise.resolve())
const done = await Promise.all(runs.map((run, i) => inTurn(postgres, run, i)))
printTable(
  ['processing time', 'schedule', 'records/min', 'polls/record', 'delay p50', 'p95', 'idle p50', 'p95 (s)', '429s'],
  Object.keys(processingTimes).flatMap((distribution) =>
    done
      .filter((each) => each.distribution === distribution)
      .map(({ schedule, figures }) => [
        distribution,
        schedule,
        figures.perWindow.toFixed(1),
        figures.saturated.pollsPerRecord.toFixed(2),
        ...delays(figures.saturated.delaysMs),
        ...delays(figures.idle?.delaysMs ?? []),
        String(figures.refused),
      ]),
  ),
)
printVerdicts(done.filter(({ schedule }) => schedule === 'learned'))

type Done = ChosenRun & { figures: BudgetFigures }

/** Starts all runs of the learned schedule at once, the others when a place becomes free. */
function inTurn(server: BenchPostgres, run: ChosenRun, i: number): Promise<Done> {
  if (run.schedule === 'learned') return measure(server, run, i)
  const before = plainTurns.shift() ?? Promise.resolve()
  const measuring = before.then(() => measure(server, run, i))
  plainTurns.push(measuring.then(() => {}))
  return measuring
}

/** Starts the runs one after the other, because their start-up would otherwise keep the machine busy. */
async function measure(server: BenchPostgres, run: ChosenRun, i: number): Promise<Done> {
  await pause(i * 500)
  const database = await server.createDatabase(`run${i}`)
  const all = run.schedule === 'learned' ? windows : plainWindows
  const warmUpWindows = Math.round(all / 3)
  const figures = await runBudget({
    ...run,
    database,
    limit,
    windowMs,
    warmUpWindows,
    countedWindows: all - warmUpWindows,
    idleWindows: run.schedule === 'learned' ? Number(options.idle) : plainIdle,
  })
  return { ...run, figures }
}

function delays(compressedMs: number[]): string[] {
  if (compressedMs.length === 0) return ['', '']
  return [0.5, 0.95].map((share) => ((percentile(compressedMs, share) * compression) / 1000).toFixed(1))
}

function printVerdicts(learned: Done[]): void {
  const saturated = learned.filter(({ figures }) => figures.perWindow < 48)
  const idle = learned.filter(
    ({ distribution, figures }) =>
      !distribution.startsWith('humps') &&
      figures.idle &&
      percentile(figures.idle.delaysMs, 0.95) * compression >= 5_000,
  )
  const refused = done.filter(({ figures }) => figures.refused > 0)
  const names = (missed: Done[]) =>
    missed.length ? ` (${missed.map(({ distribution }) => distribution).join('; ')})` : ''
  say(
    `Saturated at least 48 of 50: ${verdict(saturated.length === 0)}${names(saturated)}. Idle p95 of the delay under 5 s in ` +
      `the first, second and fourth: ${verdict(idle.length === 0)}${names(idle)}. No 429: ${verdict(refused.length === 0)}.`,
  )
}
