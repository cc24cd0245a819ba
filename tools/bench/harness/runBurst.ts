import { setTimeout as pause } from 'node:timers/promises'
import { openBenchRun } from './benchRun.ts'
import { type BenchDatabase, fillOutbox } from './postgres.ts'
import { replaceSchedule, type ScheduleName } from './schedules.ts'
import { type BurstFigures, figuresOf } from './simulatedBurst.ts'
import { countRefused, countUnderWay } from './through.ts'
import { trickle } from './trickle.ts'

/** One schedule with one distribution: a few records, then batches, each when the previous one has ended. */
export interface BurstRun {
  database: BenchDatabase
  schedule: 'learned' | ScheduleName
  limit: number
  windowMs: number
  /** In the sandbox's notation, in compressed seconds. */
  processingTime: string
  /** Number of records in each batch. */
  batches: readonly number[]
  /** Number of windows with a few records each before the first batch. */
  idleWindows: number
}

export interface BurstRunFigures {
  batches: (ReturnType<typeof figuresOf> & Pick<BurstFigures, 'pollsPerRecord'>)[]
  refused: number
}

/** Windows between two batches, until the requests of the first no longer count, with a few records each. */
const betweenWindows = 3
const drainWindows = 60

export async function runBurst(run: BurstRun): Promise<BurstRunFigures> {
  const { database, windowMs } = run
  await using _bench = await openBenchRun({ ...run, env: { CAPTURE_WINDOW: '1000' } })
  if (run.schedule !== 'learned') await replaceSchedule(database, run.schedule, windowMs / 60)

  const batches: BurstRunFigures['batches'] = []
  for (const [i, records] of run.batches.entries()) {
    await trickle(database, windowMs, i === 0 ? run.idleWindows : betweenWindows)
    const newest = await readNewestId(database)
    await fillOutbox(database, records)
    await drained(run)
    batches.push(await readBatch(database, newest, records))
  }
  return { batches, refused: await countRefused(database) }
}

async function drained({ database, windowMs }: BurstRun): Promise<void> {
  for (let waitedMs = 0; waitedMs < drainWindows * windowMs; waitedMs += windowMs / 12) {
    await pause(windowMs / 12)
    const { rows } = await database.pool.query<{ left: number }>(
      `select count(*)::int as left from outbox where status = 'new'`,
    )
    if (rows[0]?.left === 0 && (await countUnderWay(database)) === 0) return
  }
}

async function readNewestId({ pool }: BenchDatabase): Promise<string> {
  const { rows } = await pool.query<{ id: string }>('select coalesce(max(id), 0)::text as id from outbox')
  return rows[0]?.id ?? '0'
}

/** Reads how long the records after the id `newest` took, from their commit to their end in the ledger. */
async function readBatch(
  { pool }: BenchDatabase,
  newest: string,
  records: number,
): Promise<BurstRunFigures['batches'][0]> {
  const { rows } = await pool.query<{ polls: number; waitMs: number }>(
    `select s.polls, extract(epoch from s.ended_at - o.created_at)::float8 * 1000 as "waitMs"
     from outbox o join outboxd.submission s on s.outbox_id = o.id::text
     where o.id > $1 and s.state = 'completed'`,
    [newest],
  )
  if (rows.length !== records) throw new Error(`of ${records} records ${rows.length} are completed`)
  const pollsPerRecord = rows.reduce((sum, { polls }) => sum + polls, 0) / records
  return { ...figuresOf(rows.map(({ waitMs }) => waitMs)), pollsPerRecord }
}
