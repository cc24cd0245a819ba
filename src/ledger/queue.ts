import { PgBoss } from 'pg-boss'
import type { MovedPoll, PlannedPoll, PollJob } from '../model.ts'
import { createPool, type Database } from '../postgres/database.ts'
import type { DatabaseAddress } from '../postgres/databaseAddress.ts'
import { catalogSearchPathSettings, connectionsMax, daemonSessionNames } from '../postgres/sessionSettings.ts'
import { shortReadPlannerOptions } from './ledgerSessions.ts'

export interface NewPollJob {
  jobId: string
  submissionId: string
  inMs: number
  /** True if the transaction is far overdue, so that its polls are fetched apart from others. */
  rarely: boolean
}

export interface DuePoll {
  job: PollJob
  submissionId: string
}

export const queueName = 'outboxd_poll'
export const queueSchemaName = 'outboxd_jobs'
const rarePriority = -1

/**
 * With these options, pg-boss never gives up or deletes a poll, because the ledger decides when a transaction is over.
 */
const queueOptions = {
  policy: 'standard',
  retryLimit: 1_000_000,
  retryDelay: 0,
  expireInSeconds: 3_600,
  heartbeatSeconds: 10,
  retentionSeconds: 10 * 365 * 86_400,
  deleteAfterSeconds: 3_600,
} as const

export async function installPollQueue(url: string): Promise<void> {
  // A migration of pg-boss may take long, but must not wait long for locks.
  const pool = createPool({
    url,
    name: 'outboxd migrate',
    connections: 2,
    settings: { ...catalogSearchPathSettings, lock_timeout: '10000' },
    limits: { connectMs: 5_000, statementMs: 0, answerMs: 0 },
  })
  const boss = new PgBoss({ db: within(pool), schema: queueSchemaName, supervise: false, schedule: false })
  boss.on('error', () => {}) // start() rejects with the same error
  try {
    await boss.start()
    if (await boss.getQueue(queueName)) await boss.updateQueue(queueName, updatable(queueOptions))
    else await boss.createQueue(queueName, queueOptions)
  } finally {
    await boss.stop({ graceful: false })
    await pool.end()
  }
}

function updatable({ policy: _, ...options }: typeof queueOptions) {
  return options
}

/** Must be closed. */
export type PollQueue = Awaited<ReturnType<typeof openPollQueue>>

/**
 * Opens the pg-boss queue of polls. A job says only which submission to poll, and when. All else is in the ledger
 * (docs/why/guarantee.md). Methods with `db` work in the caller's transaction.
 *
 * @param onError called if background work of pg-boss failed. pg-boss tries such work again.
 * @throws Error if the queue is missing
 */
export async function openPollQueue(url: string | DatabaseAddress, onError: (error: Error) => void) {
  // pg-boss's default pool would wait without limit for a locked job.
  const pool = createPool({
    url,
    name: daemonSessionNames.queue,
    connections: connectionsMax.queue,
    onIdleError: onError,
    settings: { ...catalogSearchPathSettings, ...shortReadPlannerOptions, lock_timeout: '3000' },
  })
  const boss = new PgBoss({
    db: within(pool),
    schema: queueSchemaName,
    migrate: false,
    createSchema: false,
    schedule: false,
    supervise: false, // off, because pg-boss would query five times a second
    monitorIntervalSeconds: 5,
    maintenanceIntervalSeconds: 60,
  })
  boss.on('error', onError)
  try {
    await boss.start()
    // pg-boss checks only its version. Without the queue, the ledger would refuse the outcome of each tracked record.
    if (!(await boss.getQueue(queueName))) throw new Error(queueMissingMessage)
  } catch (error) {
    await boss.stop({ graceful: false })
    await pool.end()
    throw error
  }
  return {
    async fetch(db: Database, limit: number, rarely: boolean): Promise<DuePoll[]> {
      const jobs = await boss.fetch<Pick<NewPollJob, 'submissionId'>>(queueName, {
        batchSize: limit,
        ...(rarely ? { maxPriority: rarePriority } : { minPriority: rarePriority + 1 }),
        includeMetadata: true,
        db: within(db),
      })
      return jobs.map(({ id, retryCount, data }) => ({ job: { id, retryCount }, submissionId: data.submissionId }))
    },
    async complete(db: Database, jobs: readonly PollJob[]): Promise<Set<string>> {
      // pg-boss 12.35 returns the ids, although its declared type is empty.
      const response = await boss.complete(queueName, [...jobs], undefined, { db: within(db) })
      return new Set((response as { settled: string[] }).settled)
    },
    async insert(db: Database, plans: readonly NewPollJob[]): Promise<void> {
      await boss.insert(
        queueName,
        plans.map(({ jobId, submissionId, inMs, rarely }) => ({
          id: jobId,
          priority: rarely ? rarePriority : 0,
          data: { submissionId },
          startAfter: interval(inMs),
        })),
        { db: within(db) },
      )
    },
    /** Does nothing while an instance works on the job. */
    async move(db: Database, jobId: string, inMs: number): Promise<void> {
      await boss.update(queueName, undefined, { id: jobId, startAfter: interval(inMs), db: within(db) })
    },
    async touch(jobs: readonly PollJob[]): Promise<void> {
      await boss.touch(queueName, [...jobs])
    },
    /** Queues jobs again if their instance was silent for 10 s, and deletes old jobs. Works every 5 s at most. */
    supervise: (): Promise<void> => boss.supervise(queueName),
    /** True if any instance works on a job, or died while it did. */
    async hasActiveJobs(): Promise<boolean> {
      const { rowCount } = await pool.query(
        `select from ${queueSchemaName}.job where name = $1 and state = 'active' limit 1`,
        [queueName],
      )
      return (rowCount ?? 0) > 0
    },
    async close(): Promise<void> {
      await boss.stop({ graceful: false })
      await pool.end()
    },
  }
}

const queueMissingMessage = `the schema ${queueSchemaName} lacks the queue ${queueName}, perhaps because a migration was interrupted or the schema was restored in part. Without the queue, no transaction can be tracked: run \`outboxd migrate\``

/** Writes seconds with six decimals, because Postgres does not accept 1e-7 as an interval. */
const interval = (ms: number) => (ms / 1000).toFixed(6)

function within(db: Database) {
  return { executeSql: (text: string, values?: unknown[]) => db.query(text, values) }
}

/** Reads polls that are not due yet. Leaves out a poll if the one before had no usable answer. */
export async function readPlannedPolls(db: Database, limit: number): Promise<PlannedPoll[]> {
  const { rows } = await db.query<PlannedPoll>(
    `select id as "submissionId", job_id as "jobId", resource, not_done_ms::float8 as "notDoneMs",
       extract(epoch from now() - accepted_at)::float8 * 1000 as "ageMs",
       extract(epoch from poll_at - now())::float8 * 1000 as "inMs"
     from outboxd.submission
     where job_id is not null and poll_at > now() and state = 'accepted' and fruitless = 0
       and not polled_rarely
     order by poll_at limit $1`,
    [limit],
  )
  return rows
}

/** Runs in a transaction. Does not move polls that are due or on which an instance works. */
export async function reschedulePolls(
  db: Database,
  queue: Pick<PollQueue, 'move'>,
  moves: readonly MovedPoll[],
): Promise<void> {
  const ours = await lockFreePollJobs(
    db,
    moves.map(({ jobId }) => jobId),
  )
  const { rows } = await db.query<{ jobId: string }>(
    `update outboxd.submission s set poll_at = now() + move."inMs" * interval '1 ms'
     from json_to_recordset($1) as move("submissionId" uuid, "jobId" uuid, "inMs" float8)
     where s.id = move."submissionId" and s.job_id = move."jobId" and s.poll_at > now()
     returning s.job_id as "jobId"`,
    [JSON.stringify(moves.filter(({ jobId }) => ours.has(jobId)))],
  )
  const moved = new Set(rows.map(({ jobId }) => jobId))
  for (const { jobId, inMs } of moves) if (moved.has(jobId)) await queue.move(db, jobId, inMs)
}

/*
 * The order of locks in a transaction, to avoid deadlocks:
 *
 * 1  jobs of polls           lockPollJobs. writeOutcomes completes the jobs; moveDueTimesIfClockSetBack moves all jobs
 * 2  ids of transactions     lockTransactionIds
 * 3  submissions             lockSubmissionsAndReadKeys, in the order of their ids
 * 4  keys                    lockKeys
 *
 * A claim never waits for these locks, because it skips locked rows.
 */

export async function lockPollJobs(db: Database, submissions: readonly { id: string }[]): Promise<void> {
  await db.query(
    `select from ${queueSchemaName}.job where name = '${queueName}' and id = any(array(
       select job_id from outboxd.submission where id = any($1::uuid[]) and job_id is not null
     )) order by id for update`,
    [submissions.map(({ id }) => id)],
  )
}

export async function removePollJobs(db: Database, jobIds: readonly string[]): Promise<void> {
  await db.query(`delete from ${queueSchemaName}.job where name = '${queueName}' and id = any($1::uuid[])`, [jobIds])
}

async function lockFreePollJobs(db: Database, jobIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>(
    `select id from ${queueSchemaName}.job where name = '${queueName}' and id = any($1::uuid[]) order by id for update skip locked`,
    [jobIds],
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * Creates a poll job for each tracked submission whose job is gone or ended. Makes a job due whose poll is due, because
 * a job that was written while the clock was set back may lie in the future. Runs in a transaction.
 */
export async function recreateMissingPollJobs(db: Database, queue: Pick<PollQueue, 'insert'>): Promise<number> {
  await db.query(
    `update ${queueSchemaName}.job j set start_after = s.poll_at from outboxd.submission s
     where s.poll_at < clock_timestamp() - interval '5 s' and j.name = '${queueName}' and j.id = s.job_id
       and j.state in ('created', 'retry') and j.start_after > clock_timestamp()`,
  )
  const { rows } = await db.query<Omit<NewPollJob, 'inMs'>>(
    `update outboxd.submission s set job_id = gen_random_uuid(), revision = revision + 1
     where s.job_id is not null and s.poll_at < clock_timestamp() and not exists (
       select from ${queueSchemaName}.job j where j.id = s.job_id and j.state in ('created', 'retry', 'active')
     ) returning s.id as "submissionId", s.job_id as "jobId", s.polled_rarely as rarely`,
  )
  if (rows.length > 0)
    await queue.insert(
      db,
      rows.map((each) => ({ ...each, inMs: 0 })),
    )
  return rows.length
}
