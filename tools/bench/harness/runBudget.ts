import { setTimeout as pause } from 'node:timers/promises'
import { openBenchRun } from './benchRun.ts'
import { type BenchDatabase, fillOutbox } from './postgres.ts'
import { replaceSchedule, type ScheduleName } from './schedules.ts'
import { countRefused, countUnderWay, databaseNow, readThrough, type Through } from './through.ts'
import { trickle } from './trickle.ts'

/** One schedule with one distribution: first as many records as the budget allows, then a few. */
export interface BudgetRun {
  database: BenchDatabase
  schedule: 'learned' | ScheduleName
  limit: number
  windowMs: number
  /** In the sandbox's notation, in compressed seconds. */
  processingTime: string
  warmUpWindows: number
  countedWindows: number
  /** 0: only the saturated part. */
  idleWindows: number
}

export interface BudgetFigures {
  saturated: Through
  /** Records completed in a window while saturated, on average. */
  perWindow: number
  idle: Through | null
  refused: number
}

const drainWindows = 15
/** The backlog that is left at the end. With a smaller one, the price of a poll would fall. */
const backlogWindows = 60

export async function runBudget(run: BudgetRun): Promise<BudgetFigures> {
  const { database, limit, windowMs } = run
  const windows = run.warmUpWindows + run.countedWindows
  await fillOutbox(database, (limit / 2) * (windows + backlogWindows))
  await using _bench = await openBenchRun(run)
  if (run.schedule !== 'learned') await replaceSchedule(database, run.schedule, windowMs / 60)

  await pause(run.warmUpWindows * windowMs)
  const from = await databaseNow(database)
  await pause(run.countedWindows * windowMs)
  const until = await databaseNow(database)
  const saturated = await readThrough(database, from, until)

  const idle = run.idleWindows > 0 ? await runIdle(run) : null
  const perWindow = (saturated.records * windowMs) / (until.getTime() - from.getTime())
  return { saturated, perWindow, idle, refused: await countRefused(database) }
}

/** Deletes the backlog, waits until records on their way have ended, and then adds a few records per window. */
async function runIdle({ database, windowMs, idleWindows }: BudgetRun): Promise<Through> {
  await database.pool.query(`delete from outbox where status = 'new'`)
  for (let waitedMs = 0; waitedMs < drainWindows * windowMs; waitedMs += windowMs / 6) {
    if ((await countUnderWay(database)) === 0) break
    await pause(windowMs / 6)
  }
  const from = await databaseNow(database)
  await trickle(database, windowMs, idleWindows)
  for (let waitedMs = 0; waitedMs < drainWindows * windowMs; waitedMs += windowMs / 6) {
    if ((await countUnderWay(database)) === 0) break
    await pause(windowMs / 6)
  }
  return readThrough(database, from, await databaseNow(database))
}
