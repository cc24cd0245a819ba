import { setTimeout as pause } from 'node:timers/promises'
import { openBenchRun } from './benchRun.ts'
import { type BenchDatabase, fillOutbox } from './postgres.ts'
import { databaseNow } from './through.ts'

export interface ShareRun {
  database: BenchDatabase
  daemons: number
  limit: number
  windowMs: number
  processingTime: string
  warmUpWindows: number
  countedWindows: number
}

export interface ShareFigures {
  /** The largest number of requests in any window, wherever the window begins. */
  mostInAnyWindow: number
  /** Requests in the counted time, as a share of those that the limit allows. */
  used: number
  refused: number
  /** Requests in the counted time. */
  requests: number
}

/** Measures what several daemons with one budget send to the service, which logs every request before it answers. */
export async function runShare(run: ShareRun): Promise<ShareFigures> {
  const { database, limit, windowMs } = run
  await fillOutbox(database, limit * (run.warmUpWindows + run.countedWindows + 2))
  await using _run = await openBenchRun(run)
  await pause(run.warmUpWindows * windowMs)
  const from = await databaseNow(database)
  await pause(run.countedWindows * windowMs)
  const until = await databaseNow(database)
  const requests = await countArrivals(database, from, until)
  return {
    mostInAnyWindow: await mostInAnyWindow(database, windowMs),
    used: requests / ((limit * (until.getTime() - from.getTime())) / windowMs),
    refused: await countRefusals(database),
    requests,
  }
}

async function countArrivals({ pool }: BenchDatabase, from: Date, until: Date): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    `select count(*)::int as n from sandbox.ledger where path like '/api/%' and arrived_at > $1 and arrived_at <= $2`,
    [from, until],
  )
  return rows[0]?.n ?? 0
}

/** Returns the largest number of requests, refused or not, in a sliding window that ends at a request. */
async function mostInAnyWindow({ pool }: BenchDatabase, windowMs: number): Promise<number> {
  const { rows } = await pool.query<{ most: number }>(
    `select coalesce(max(n), 0)::int as most from (
       select count(*) over (order by arrived_at
         range between ($1::bigint - 1) * interval '1 microsecond' preceding and current row) as n
       from sandbox.ledger where path like '/api/%') windows`,
    [windowMs * 1000],
  )
  return rows[0]?.most ?? 0
}

async function countRefusals({ pool }: BenchDatabase): Promise<number> {
  const { rows } = await pool.query<{ n: number }>('select count(*)::int as n from sandbox.ledger where status = 429')
  return rows[0]?.n ?? 0
}
