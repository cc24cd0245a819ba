import { setTimeout as pause } from 'node:timers/promises'
import { startProgram } from '../../../test/support/program.ts'
import { startBenchDaemon } from './benchDaemon.ts'
import { type BenchDatabase, fillOutbox, insertRecords } from './postgres.ts'
import { arrivals } from './workloads.ts'

/** A daemon and a sandbox on one database: first as many records as the budget allows, then a few. */
export interface BudgetRun {
  database: BenchDatabase
  /** Requests that the service allows in a window, and the window. Service and daemon have the same. */
  limit: number
  windowMs: number
  /** In the sandbox's notation, such as `constant:3:0.1`, in compressed seconds. */
  processingTime: string
  warmUpWindows: number
  countedWindows: number
  /** 0: only the saturated part. */
  idleWindows: number
}

/** The records that were completed in a time span. */
export interface Through {
  records: number
  pollsPerRecord: number
  /** Times between the end at the service and its entry in the ledger. */
  delaysMs: number[]
}

export interface BudgetFigures {
  saturated: Through
  /** Records completed in a window while saturated, on average. */
  perWindow: number
  idle: Through | null
  /** Requests that the service refused because the limit was exceeded. */
  refused: number
}

const drainWindows = 15
/** The backlog that is left at the end. With a smaller one, the price of a poll would fall. */
const backlogWindows = 60
/** A window represents a minute. */
const idleRecordsPerWindow = 6

export async function runBudget(run: BudgetRun): Promise<BudgetFigures> {
  const { database, limit, windowMs } = run
  const windows = run.warmUpWindows + run.countedWindows
  await fillOutbox(database, (limit / 2) * (windows + backlogWindows))
  await using sandbox = await startBenchSandbox(run)
  await using _daemon = await startBenchDaemon({
    databaseUrl: database.url,
    serviceUrl: sandbox.url,
    env: {
      RATE_LIMIT_REQUESTS: String(limit),
      RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
      CAPTURE_WINDOW: String(limit),
      LOG_LEVEL: 'info',
    },
  })

  await pause(run.warmUpWindows * windowMs)
  const from = await databaseNow(database)
  await pause(run.countedWindows * windowMs)
  const until = await databaseNow(database)
  const saturated = await readThrough(database, from, until)

  const idle = run.idleWindows > 0 ? await runIdle(run) : null
  const perWindow = (saturated.records * windowMs) / (until.getTime() - from.getTime())
  return { saturated, perWindow, idle, refused: await countRefused(database) }
}

/** Starts a sandbox in the run's database. */
async function startBenchSandbox({ database, limit, windowMs, processingTime }: BudgetRun) {
  const sandbox = startProgram({
    args: ['sandbox', '--port', '0', '--json'],
    stderr: 'ignore',
    env: {
      SANDBOX_DATABASE_URL: database.url,
      SANDBOX_RATE_LIMIT_REQUESTS: String(limit),
      SANDBOX_RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000),
      SANDBOX_PROCESSING_TIME: processingTime,
    },
  })
  const line = await sandbox.line((each) => each.startsWith('{'))
  return { ...sandbox, url: (JSON.parse(line) as { url: string }).url }
}

/** Deletes the backlog, waits until records on their way have ended, and then adds a few records per window. */
async function runIdle(run: BudgetRun): Promise<Through> {
  const { database, windowMs, idleWindows } = run
  await database.pool.query(`delete from outbox where status = 'new'`)
  await drained(run)
  const from = await databaseNow(database)
  const startMs = performance.now()
  for (const atMs of arrivals(idleRecordsPerWindow, windowMs, idleWindows * windowMs, 1)) {
    await pause(Math.max(0, startMs + atMs - performance.now()))
    await insertRecords(database, 1)
  }
  await drained(run)
  return readThrough(database, from, await databaseNow(database))
}

/** Waits until no submission is on its way: each has ended or waits for a person. */
async function drained({ database, windowMs }: BudgetRun): Promise<void> {
  for (let waitedMs = 0; waitedMs < drainWindows * windowMs; waitedMs += windowMs / 6) {
    const { rowCount } = await database.pool.query('select from outboxd.submission where ended_at is null')
    if (rowCount === 0) return
    await pause(windowMs / 6)
  }
}

/** Reads the submissions completed in a time span of the database's clock, and their delays by the service's log. */
async function readThrough({ pool }: BenchDatabase, from: Date, until: Date): Promise<Through> {
  const { rows } = await pool.query<{ polls: number; delayMs: number }>(
    `select s.polls, extract(epoch from s.ended_at - t.done_at)::float8 * 1000 as "delayMs"
     from outboxd.submission s join sandbox.transactions t on t.id = s.transaction_id
     where s.state = 'completed' and s.ended_at > $1 and s.ended_at <= $2`,
    [from, until],
  )
  return {
    records: rows.length,
    pollsPerRecord: rows.reduce((sum, { polls }) => sum + polls, 0) / rows.length,
    delaysMs: rows.map(({ delayMs }) => delayMs),
  }
}

async function countRefused({ pool }: BenchDatabase): Promise<number> {
  const { rowCount } = await pool.query('select from sandbox.ledger where status = 429')
  return rowCount ?? 0
}

/** Reads the database's clock, which the ledger's times come from. */
async function databaseNow({ pool }: BenchDatabase): Promise<Date> {
  const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now')
  return rows[0]?.now ?? new Date(Number.NaN)
}
