import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { beforeEach } from 'vitest'
import { type Clock, systemClock } from '../../src/clock.ts'
import { emptyOutcome } from '../../src/daemon/dispatch/outcomeWriter.ts'
import { beginClaimSql, insertRequests, lockBudget } from '../../src/ledger/budget.ts'
import { type CaptureSession, withCaptureLock } from '../../src/ledger/capture.ts'
import { Claims } from '../../src/ledger/claims.ts'
import { LedgerHistory } from '../../src/ledger/history/history.ts'
import type { LedgerStandby } from '../../src/ledger/history/judgeHistory.ts'
import { type InstanceLedger, type WrittenOutcomes, writeOutcomes } from '../../src/ledger/outcomes.ts'
import { PollQueue } from '../../src/ledger/queue.ts'
import { hasSettings, type Settings } from '../../src/ledger/settings.ts'
import { submissionColumnsSql } from '../../src/ledger/submissions.ts'
import type { PauseBackoff } from '../../src/model/breaker.ts'
import type { OutcomeBatch } from '../../src/model/dispatch.ts'
import type { CapturedRecord, Changes } from '../../src/model/outbox.ts'
import type { PollClaim, Submission, Transition } from '../../src/model/submission.ts'
import { type Database, inTransaction } from '../../src/postgres/database.ts'
import { asChange, type GivenChange } from './change.ts'
import { createDatabase, type TestDatabase } from './database.ts'
import { openForFile } from './openForFile.ts'
import { openPool } from './postgres.ts'
import { record } from './record.ts'

type InstanceOn = Omit<InstanceLedger, 'history'> & { history: ConstructorParameters<typeof Claims>[0]['history'] }

/** Claims and writes outcomes, as the dispatcher and the outcome writer do. */
export class TestDispatch extends Claims {
  readonly #on: InstanceOn
  constructor(on: InstanceOn, clock: Pick<Clock, 'stopwatch'>) {
    super(on, clock)
    this.#on = on
  }

  writeOutcomes(batch: OutcomeBatch): Promise<WrittenOutcomes> {
    return writeOutcomes(this.#on, batch)
  }
}

/** A ledger for one test file, with the poll queue, and functions to fill and read it. */
export interface Ledger extends AsyncDisposable {
  readonly pool: pg.Pool
  readonly url: string
  readonly queue: PollQueue
  /** Empties the ledger, the queue and the outbox. */
  reset(): Promise<void>
  /** Captures records as the daemon does, with defaults for missing fields. @returns the submissions' ids, in order */
  capture(records: readonly Partial<CapturedRecord>[], changes?: Changes): Promise<string[]>
  /** Makes an instance that claims and writes outcomes. */
  dispatch(on?: Partial<Omit<InstanceOn, 'ledger'>>, clock?: Pick<Clock, 'stopwatch'>): TestDispatch
  read(id: string): Promise<Submission>
  /** The row with all its columns. */
  row(id: string): Promise<Record<string, unknown>>
  /** From, to and cause of each event, oldest first. */
  events(id: string): Promise<string[]>
  /** Counts the submissions of each state in their table. */
  countStates(): Promise<Record<string, number>>
  /** Ids of the records that have a job. */
  polled(): Promise<string[]>
}

export const pauseBackoff: PauseBackoff = {
  throttled: [1_000, 2_000, 4_000, 8_000],
  unavailable: [300_000],
  unauthorized: [60_000],
  unreachable: [1_000, 2_000, 4_000],
}

/** @param migratedUrl a migrated database to use instead of a new one */
export async function openLedger(migratedUrl?: string): Promise<Ledger> {
  const database = migratedUrl === undefined ? await createDatabase() : given(migratedUrl)
  const { pool, url } = database
  const queue = await PollQueue.open(pool)
  return {
    pool,
    url,
    queue,
    async reset() {
      // Takes a hundredth of the time of TRUNCATE, which makes new files for each table and index, and needs no new plans.
      await pool.query(`begin;
        set local session_replication_role = replica; -- no trigger, so the log's rows can be deleted
        delete from outboxd.submission; delete from outboxd.submission_event; delete from outboxd.state_delta;
        delete from outboxd.request;
        delete from outboxd.pause; delete from outboxd.instance; delete from outboxd.problem;
        delete from outboxd.request_count;
        delete from outboxd.document; delete from outboxd.outbox_cursor;
        delete from outboxd.operator_act; delete from outbox; delete from outboxd_jobs.job;
        update outboxd.ledger l set settings = null, settings_since = null, settings_by = null, spent_at = null,
          system_id = n.system_id, timeline = n.timeline, database_oid = n.database_oid, table_oid = n.table_oid,
          written_by = pg_current_xact_id(), lost_at = null, recovered_at = clock_timestamp() -- as recover does
        from outboxd.history(null, null, null) n;
        commit`)
    },
    async capture(records, changes = 'each') {
      const kept = records.map(record)
      const captureLock = openCaptureLock(pool)
      const take = () =>
        captureLock.withLock(async (turn) => {
          await turn.lockDocuments(kept)
          return turn.insert(kept, changes)
        })
      let inserted = await take()
      for (; inserted === null; inserted = await take()) await new Promise(setImmediate)
      if (inserted.length < kept.length) throw new Error('some were captured before')
      return kept.map(({ id }) => id)
    },
    dispatch(given = {}, clock = systemClock) {
      const instance = given.instance ?? { id: randomUUID(), who: 'test' }
      const on: InstanceOn = {
        ledger: pool,
        queue,
        instance,
        history: historyOf(pool, instance.id),
        requestOverAfterMs: 33_000,
        backoff: pauseBackoff,
        ...given,
      }
      return new TestDispatch(on, clock)
    },
    async read(id) {
      const { rows } = await pool.query<Submission>(
        `select ${submissionColumnsSql} from outboxd.submission s where id = $1`,
        [id],
      )
      return rows[0] as Submission
    },
    async row(id) {
      const { rows } = await pool.query<Record<string, unknown>>('select * from outboxd.submission where id = $1', [id])
      return rows[0] ?? {}
    },
    async events(id) {
      const { rows } = await pool.query<{ line: string }>(
        `select concat_ws(' ', coalesce(from_state, 'new'), '->', to_state || ':', coalesce(message, cause)) as line
         from outboxd.submission_event where submission_id = $1 order by id`,
        [id],
      )
      return rows.map(({ line }) => line)
    },
    async countStates() {
      const { rows } = await pool.query<{ state: string; n: number }>(
        'select state, count(*)::int as n from outboxd.submission group by state',
      )
      return Object.fromEntries(rows.map(({ state, n }) => [state, n]))
    },
    async polled() {
      const { rows } = await pool.query<{ id: string }>(
        'select submission_id as id from outboxd.poll order by submission_id',
      )
      return rows.map(({ id }) => id)
    },
    async [Symbol.asyncDispose]() {
      await queue[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Opens a ledger for the tests of a file, which is empty before each of them. */
export function openLedgerForFile(): Ledger {
  const ledger = openForFile(openLedger)
  beforeEach(() => ledger.reset())
  return ledger
}

function given(url: string): TestDatabase {
  const pool = openPool(url)
  return { url, pool, [Symbol.asyncDispose]: () => pool.end() }
}

/** Claims up to the wanted numbers of submissions and polls. */
export async function claim(
  dispatch: TestDispatch,
  wanted: { submissions?: number; polls?: number; rarePolls?: number },
) {
  const { submissions = 0, polls = 0, rarePolls = 0 } = wanted
  return dispatch.claim({ id: randomUUID(), submissions, polls, rarePolls }, () => {})
}

/** Claims the breaker's trial. */
export const claimTrial = (dispatch: TestDispatch) => dispatch.claimTrial(randomUUID(), () => {})

export function transition(submission: Submission, change: GivenChange, poll: PollClaim | null = null): Transition {
  return { submission, poll, change: asChange(change), cause: 'asked_again', message: null, request: null }
}

/** Makes a batch that is empty except for the given fields. */
export function outcomeBatch(given: Partial<OutcomeBatch>): OutcomeBatch {
  const { transition: _, ...empty } = emptyOutcome
  return { ...empty, transitions: [], ...given }
}

/** Sets the limit as a daemon does at its start. By default it is higher than a test needs. */
export async function setLimit(pool: pg.Pool, requests = 500_000, windowMs = 60_000): Promise<void> {
  await setSettings(pool, { RATE_LIMIT_REQUESTS: String(requests), RATE_LIMIT_WINDOW_SECONDS: String(windowMs / 1000) })
}

export const setKeyOnFailure = (pool: pg.Pool, value: 'continue' | 'block') =>
  setSettings(pool, { KEY_ON_FAILURE: value })

/** Adds settings to the ledger's. */
export async function setSettings(pool: pg.Pool, settings: Settings): Promise<void> {
  await pool.query(
    `update outboxd.ledger set settings = coalesce(settings, '{}') || $1, settings_since = now(), settings_by = 'test'`,
    [JSON.stringify(settings)],
  )
}

/** Claims up to this many requests, as far as they are free. @returns their ids */
export function claimRequests(
  pool: pg.Pool,
  count: number,
  { instanceId = randomUUID(), overAfterMs = 33_000 } = {},
): Promise<string[]> {
  const claim = async (db: Database) => {
    const free = await lockBudget(db)
    const purposes = Array.from({ length: Math.min(count, free) }, () => ({ purpose: 'question' as const }))
    return purposes.length === 0 ? [] : insertRequests(db, { instanceId, overAfterMs }, purposes)
  }
  return inTransaction(pool, claim, { openingSql: beginClaimSql })
}

/** Spends what is free of the limit for an hour. */
export async function spendLimit(pool: pg.Pool): Promise<void> {
  await claimRequests(pool, 10_000, { overAfterMs: 3_600_000 })
}

export async function countFree(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ free: number }>('select free from outboxd.budget')
  return rows[0]?.free ?? 0
}

/** Makes the history of a daemon. */
export const historyOf = (pool: pg.Pool, instanceId: string = randomUUID(), standby: LedgerStandby = 'none') =>
  new LedgerHistory({ pool, instanceId, standby, clock: systemClock })

/** The lock of capture, for one batch at a time. */
export function openCaptureLock(pool: pg.Pool, settings?: Settings) {
  const on = { instance: { id: 'test', who: 'test' }, history: historyOf(pool) }
  return {
    async withLock<T>(work: (session: CaptureSession) => Promise<T>) {
      const hasOwnSettings = async (db: Database) => settings === undefined || hasSettings(db, settings)
      return withCaptureLock({ ...on, hasOwnSettings }, pool, work)
    },
  }
}
