import { type Clock, PgBoss } from 'pg-boss'
import type { MovedPoll, PlannedPoll, PollClaim } from '../model/submission.ts'
import { createPool, type Database, LedgerDamaged, queryOne, readLedgerSchema } from '../postgres/database.ts'
import { ledgerSchemaOf } from '../postgres/ledgerSchema.ts'
import { catalogSearchPathSettings } from '../postgres/sessionSettings.ts'
import { lockSubmissions } from './submissions.ts'

/*
 * pg-boss alone knows when a poll is due. The job of a poll has the id of its record, and lives in these transactions:
 *
 *     acceptance   the job is inserted
 *     claim        the job is fetched: it is active, and outboxd.request names the record and the claim
 *     outcome      the job is deleted, and inserted anew if the record is to be polled again
 *     takeover     the jobs that a dead instance had fetched are deleted, and inserted as due
 *
 * Who changes an accepted record renews or removes its job in the same transaction. An insert of a job whose id exists
 * does nothing and does not say so: therefore jobs are deleted first, and the inserted ids are counted.
 */

export const queueName = 'outboxd_poll'
const queueSchemaOf = (ledgerSchema: string): string => `${ledgerSchema}_jobs`

/** With these options, pg-boss never gives up or deletes a poll, because the ledger decides when a transaction is over. */
const queueOptions = {
  policy: 'standard',
  retryLimit: 1_000_000,
  retryDelay: 0,
  expireInSeconds: 86_400,
  retentionSeconds: 10 * 365 * 86_400,
} as const

/**
 * pg-boss fetches by priority, not by due time. So a poll's priority is minus the second in which it is due, counted
 * from 2026, because a priority has four bytes. Polls that are rarely made are 10^9 s lower, so that they can be fetched
 * apart.
 */
const priorityBase = Date.UTC(2026) / 1_000
const rarePriorityMax = -1_000_000_000

/** All that knows pg-boss's columns. Its conditions are those of pg-boss's index for fetching. */
const pollViewSql = (queueSchema: string): string => `
  create or replace view outboxd.poll as
  select id as submission_id, created_on as planned_at, start_after as due_at, priority,
    priority <= ${rarePriorityMax} as is_rare,
    state >= 'active' as is_under_way,
    state < 'active' and start_after <= now()
      and priority >= ${priorityBase} - floor(extract(epoch from now()))::bigint as is_due,
    state < 'active' and start_after <= now() and priority <= ${rarePriorityMax} as is_rare_and_due
  from ${queueSchema}.job where name = '${queueName}' and not blocked`

export async function installPollQueue(url: string): Promise<void> {
  const schema = queueSchemaOf(ledgerSchemaOf(url))
  // A migration of pg-boss may take long, but must not wait long for locks.
  const pool = createPool({
    url,
    name: 'outboxd migrate',
    connections: 2,
    settings: { ...catalogSearchPathSettings, lock_timeout: '10000' },
    limits: { connectMs: 5_000, statementMs: 0, answerMs: 0 },
  })
  const boss = new PgBoss({ db: within(pool), schema, supervise: false, schedule: false })
  boss.on('error', () => {}) // start() rejects with the same error
  try {
    await boss.start()
    await boss.createQueue(queueName, queueOptions) // does nothing if the queue exists
    await pool.query(pollViewSql(schema))
  } finally {
    await boss.stop({ graceful: false })
    await pool.end()
  }
}

export interface NewPoll {
  submissionId: string
  inMs: number
  /** True if the transaction is far overdue, so that its polls get a small share of the requests. */
  rarely: boolean
}

/** The pg-boss queue of polls. Each method works in the caller's transaction. */
export class PollQueue {
  readonly #boss: PgBoss

  private constructor(boss: PgBoss) {
    this.#boss = boss
  }

  /** @throws Error if the queue is missing */
  static async open(db: Database): Promise<PollQueue> {
    const schema = queueSchemaOf(await readLedgerSchema(db))
    const boss = new PgBoss({
      db: within(db),
      schema,
      migrate: false,
      createSchema: false,
      schedule: false,
      supervise: false,
      clock: clockWithoutTimers,
    })
    boss.on('error', () => {}) // the call that fails rejects with the same error
    await boss.start()
    // pg-boss checks only its version. Without the queue, the ledger would refuse the outcome of each tracked record.
    if (!(await boss.getQueue(queueName))) throw new Error(queueMissingMessage(schema))
    return new PollQueue(boss)
  }

  /** Fetches due polls, those due longest first. @returns the ids of their records */
  async fetch(db: Database, limit: number, { rarely }: { rarely: boolean }): Promise<string[]> {
    const share = rarely ? { maxPriority: rarePriorityMax } : { minPriority: rarePriorityMax + 1 }
    const jobs = await this.#boss.fetch(queueName, { batchSize: limit, ...share, db: within(db) })
    return jobs.map(({ id }) => id)
  }

  /** Plans these polls anew, and removes the other planned polls of `submissionIds`. */
  async replace(db: Database, submissionIds: readonly string[], polls: readonly NewPoll[]): Promise<void> {
    const nowSeconds = await removePolls(db, submissionIds)
    if (polls.length === 0) return
    const jobs = polls.map(({ submissionId, inMs, rarely }) => {
      const priority = priorityBase - Math.floor(nowSeconds + inMs / 1_000) + (rarely ? rarePriorityMax : 0)
      return { id: submissionId, priority, startAfter: toInterval(inMs) }
    })
    const inserted = await this.#boss.insert(queueName, jobs, { db: within(db), returnId: true })
    if (inserted?.length !== polls.length)
      throw new LedgerDamaged(`${polls.length} polls were planned, but ${inserted?.length ?? 0} jobs were inserted`)
  }

  /** Makes these records' polls due now, if the records are polled at all. @returns how many polls are due */
  async makeDue(db: Database, submissionIds: readonly string[]): Promise<number> {
    // All are locked, because a record that is not polled yet may just be accepted: its poll must not be removed.
    const { rows } = await db.query<{ submissionId: string; isPolled: boolean }>(
      `select id as "submissionId", state = 'accepted' or state = 'sending' and probing as "isPolled"
       from outboxd.submission where id = any($1::uuid[]) order by id for no key update`,
      [submissionIds],
    )
    const polls = rows.flatMap(({ submissionId, isPolled }) =>
      isPolled ? [{ submissionId, inMs: 0, rarely: false }] : [],
    )
    await this.replace(db, submissionIds, polls)
    return polls.length
  }

  /** Plans a poll for each polled record that has none. @returns how many records had none */
  async insertMissing(db: Database): Promise<number> {
    const missing = await readPolledWithoutPoll(db, null)
    let inserted = 0
    for (let from = 0; from < missing.length; from += insertedAtOnceMax) {
      const ids = missing.slice(from, from + insertedAtOnceMax)
      await lockSubmissions(db, ids)
      // Another instance may have inserted them before this one had the locks.
      inserted += await this.makeDue(db, await readPolledWithoutPoll(db, ids))
    }
    return inserted
  }

  /** Moves polls that nobody works on. Does nothing while the ledger may have lost data. Runs in a transaction. */
  async move(db: Database, moves: readonly MovedPoll[]): Promise<void> {
    const { rows } = await db.query<{ id: string }>(
      `select id from outboxd.submission
       where id = any($1::uuid[]) and state = 'accepted' and (select lost_at is null from outboxd.ledger)
       order by id for no key update skip locked`,
      [moves.map(({ submissionId }) => submissionId)],
    )
    // Only planned polls: a claim that fetched one may have been committed since.
    const { rows: removed } = await db.query<{ id: string }>(
      'delete from outboxd.poll where submission_id = any($1::uuid[]) and not is_under_way returning submission_id as id',
      [rows.map(({ id }) => id)],
    )
    const free = new Set(removed.map(({ id }) => id))
    const polls = moves.filter(({ submissionId }) => free.has(submissionId))
    await this.replace(
      db,
      [],
      polls.map((poll) => ({ ...poll, rarely: false })),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#boss.stop({ graceful: false })
  }
}

const queueMissingMessage = (schema: string): string =>
  `the schema ${schema} lacks the queue ${queueName}, perhaps because a migration was interrupted or the schema was restored in part. Without the queue, no transaction can be tracked: run \`outboxd migrate\``

/** pg-boss has timers for a cache and for its own workers. The queue needs neither. */
const clockWithoutTimers: Clock = {
  now: Date.now,
  setTimeout: () => 0,
  setInterval: () => 0,
  clearTimeout: () => {},
  clearInterval: () => {},
}

/** Writes seconds with six decimals, because Postgres does not accept 1e-7 as an interval. */
const toInterval = (ms: number) => (ms / 1000).toFixed(6)

function within(db: Database) {
  return { executeSql: (text: string, values?: unknown[]) => db.query(text, values) }
}

/** @returns the database's time in this transaction, in seconds */
async function removePolls(db: Database, submissionIds: readonly string[]): Promise<number> {
  const { now } = await queryOne<{ now: number }>(
    db,
    `with removed as (delete from outboxd.poll where submission_id = any($1::uuid[]))
     select extract(epoch from now())::float8 as now`,
    [submissionIds],
  )
  return now
}

/** Bounds the time of one statement. */
const insertedAtOnceMax = 5_000

/**
 * Reads polled records that have no planned poll, and none under way.
 *
 * @param among null for all records
 */
async function readPolledWithoutPoll(db: Database, among: readonly string[] | null): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select s.id from outboxd.submission s
     where s.ended_at is null and (s.state = 'accepted' or s.state = 'sending' and s.probing)
       and ($1::uuid[] is null or s.id = any($1)) and not exists (
         select from outboxd.poll p where p.submission_id = s.id and (not p.is_under_way or exists (
           select from outboxd.request r where r.submission_id = s.id and r.claim_id is not null
         ))
       )`,
    [among],
  )
  return rows.map(({ id }) => id)
}

/** Ends polls that are under way, so that nobody else can. @returns the requests of the polls that it ended */
export async function endPolls(
  db: Database,
  polls: readonly PollClaim[],
): Promise<{ requestId: string; submissionId: string }[]> {
  const { rows } = await db.query<{ requestId: string; submissionId: string }>(
    `update outboxd.request r set claim_id = null
     from unnest($1::bigint[], $2::uuid[]) poll(id, claim_id)
     where r.id = poll.id and r.claim_id = poll.claim_id returning r.id as "requestId", r.submission_id as "submissionId"`,
    [polls.map(({ requestId }) => requestId), polls.map(({ claimId }) => claimId)],
  )
  return rows
}

/** Removes the records' planned polls, and keeps the answers of polls under way from being written. */
export async function withdrawPolls(db: Database, submissionIds: readonly string[]): Promise<void> {
  await db.query(
    'update outboxd.request set claim_id = null where submission_id = any($1::uuid[]) and claim_id is not null',
    [submissionIds],
  )
  await removePolls(db, submissionIds)
}

/** Removes all planned polls, and keeps the answers of polls under way from being written. */
export async function withdrawAllPolls(db: Database): Promise<void> {
  await db.query('update outboxd.request set claim_id = null where claim_id is not null')
  await db.query('delete from outboxd.poll')
}

/** Reads polls that are not due within a second. Leaves out a poll if the one before had no usable answer. */
export async function readPlannedPolls(db: Database, limit: number): Promise<PlannedPoll[]> {
  const { rows } = await db.query<PlannedPoll>(
    `select s.id as "submissionId", s.resource, s.not_done_ms::float8 as "notDoneMs",
       extract(epoch from now() - s.accepted_at)::float8 * 1000 as "ageMs",
       extract(epoch from p.due_at - now())::float8 * 1000 as "inMs"
     from outboxd.poll p join outboxd.submission s on s.id = p.submission_id
     where not p.is_rare and not p.is_under_way and p.due_at > now() + interval '1 s'
       and s.state = 'accepted' and s.fruitless = 0
     order by p.priority desc limit $1`,
    [limit],
  )
  return rows
}
