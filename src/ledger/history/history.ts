import type pg from 'pg'
import { boundText } from '../../boundText.ts'
import type { Clock } from '../../clock.ts'
import { CommitUncertain, type Database, epochMsSql, inTransaction, queryOne } from '../../postgres/database.ts'
import {
  differences,
  type HistoryReading,
  type HistoryVerdict,
  judgeHistory,
  type LedgerStandby,
} from './judgeHistory.ts'

export interface LedgerHistoryOptions {
  pool: pg.Pool
  instanceId: string
  standby: LedgerStandby
  clock: Pick<Clock, 'stopwatch'>
}

export type HistoryChange =
  | { kind: 'none' }
  /** A declared standby was promoted, and sending goes on. */
  | { kind: 'promoted' }
  /** This daemon has paused all. */
  | { kind: 'lost'; detail: string }

/**
 * Keeps a daemon from sending from a ledger that has lost committed data (docs/why/guarantee.md):
 *
 *     stands            in the transactions that claim, capture or write back
 *     rememberRequest   after a claim's COMMIT: the ledger must have the request from now on
 *     lookFor, note     with each heartbeat, whose statement reads `outboxd.history`
 *     runOnce           does what the last heartbeat asks for: pauses all daemons, or accepts an identity
 *
 * While the pause stands, and after a `recover`, a daemon forgets what it wrote. A counter of all daemons would not do,
 * because the claims of the others hide the loss of one.
 */
export class LedgerHistory {
  readonly #options: LedgerHistoryOptions
  /** The last heartbeat that this daemon wrote, and its newest request. */
  #beat: { number: number; ageMs(): number } | null = null
  #request: { id: string; ageMs(): number } | null = null
  #recoveredAtMs: number | null = null
  #verdict: HistoryVerdict = { kind: 'waits' }
  /** A loss for which this daemon has not paused all yet. */
  #loss: string | null = null
  /** Since when this daemon has seen a new timeline that only others may take. */
  #waitsMs: (() => number) | null = null
  #isStandbyMissed: boolean | null = null

  constructor(options: LedgerHistoryOptions) {
    this.#options = options
  }

  async stands(db: Database): Promise<boolean> {
    const reading = await readHistory(db, this.#options.instanceId, this.lookFor())
    const verdict = this.#judge(reading)
    if (verdict.kind === 'lost') this.#loss = verdict.detail
    return verdict.kind === 'stands' && this.#loss === null
  }

  /** Like `stands`, but also false while a declared standby does not get the COMMITs. */
  async mayClaim(db: Database): Promise<boolean> {
    return (await this.stands(db)) && (this.#options.standby === 'none' || (await hasSynchronousCommits(db)))
  }

  /** @throws CommitUncertain if a standby is declared and the COMMIT may not have waited for it */
  async assertCommitIsCertain(): Promise<void> {
    const { pool, standby } = this.#options
    if (standby === 'synchronous' && !(await hasSynchronousCommits(pool)))
      throw new CommitUncertain('the server waits for no standby any more')
  }

  rememberRequest(id: string): void {
    if (this.#request === null || BigInt(id) > BigInt(this.#request.id))
      this.#request = { id, ageMs: this.#options.clock.stopwatch() }
  }

  /** The heartbeat and the request that the ledger must have. */
  lookFor(): LookedFor {
    const number = this.#knownBeat()?.number ?? 0
    const request = this.#request !== null && this.#request.ageMs() < requestKeptMs ? this.#request.id : null
    return { beats: number > beatsLostMax ? number - beatsLostMax : null, request }
  }

  /**
   * @param beats the number of the heartbeat whose statement has read `reading`
   * @returns true if `runOnce` has something to do
   */
  note(reading: HistoryReading | null, beats: number): boolean {
    const verdict = this.#judge(reading)
    this.#verdict = verdict
    if (verdict.kind === 'lost') this.#loss = verdict.detail
    if (verdict.kind === 'stands' && this.#loss === null)
      this.#beat = { number: beats, ageMs: this.#options.clock.stopwatch() }
    return this.#loss !== null || verdict.kind === 'new' || verdict.kind === 'promoted'
  }

  async runOnce(): Promise<HistoryChange> {
    const { pool } = this.#options
    const { kind } = this.#verdict
    if (kind !== 'others') this.#waitsMs = null
    else if (this.#othersTakeTooLong()) this.#loss ??= differences.timeline
    if (this.#loss !== null) return this.#pauseAll(this.#loss)
    if (kind === 'new' || kind === 'promoted') {
      await inTransaction(pool, acceptIdentity)
      this.#verdict = { kind: 'stands' }
    }
    if (kind === 'stands') await this.#lookForStandby()
    return { kind: kind === 'promoted' ? kind : 'none' }
  }

  #knownBeat() {
    return this.#beat !== null && this.#beat.ageMs() < beatKeptMs ? this.#beat : null
  }

  #judge(reading: HistoryReading | null): HistoryVerdict {
    const { standby } = this.#options
    const before = this.#recoveredAtMs
    if (reading !== null) this.#recoveredAtMs = reading.recoveredAtMs ?? 0
    const isRecovered = before !== null && (reading?.recoveredAtMs ?? 0) > before
    if (reading === null || !(reading.isLost || isRecovered))
      return judgeHistory(reading, { knows: this.#knownBeat() !== null, standby })
    this.#beat = null
    this.#request = null
    this.#loss = null
    return judgeHistory({ ...reading, missing: null }, { knows: false, standby })
  }

  #othersTakeTooLong(): boolean {
    this.#waitsMs ??= this.#options.clock.stopwatch()
    return this.#waitsMs() > othersTakeTimelineMs
  }

  async #pauseAll(detail: string): Promise<HistoryChange> {
    const { pool, instanceId } = this.#options
    const isNew = await inTransaction(pool, async (db) => {
      await db.query('select from outboxd.ledger for update')
      // Somebody may have run `recover` since this daemon noticed the loss.
      this.#judge(await readHistory(db, instanceId, this.lookFor()))
      return this.#loss !== null && (await pauseForHistory(db, detail))
    })
    return isNew ? { kind: 'lost', detail } : { kind: 'none' }
  }

  async #lookForStandby(): Promise<void> {
    const { pool, standby } = this.#options
    const isMissed = standby === 'synchronous' && !(await hasSynchronousCommits(pool))
    if (isMissed === this.#isStandbyMissed) return
    await updateStandbyPause(pool, isMissed)
    this.#isStandbyMissed = isMissed
  }
}

export interface LookedFor {
  beats: number | null
  request: string | null
}

export const nothingLookedFor: LookedFor = { beats: null, request: null }

/** A crash of Postgres may undo the last heartbeats, because they do not wait for the disk, nor for a standby. */
const beatsLostMax = 5
/** Until then, a heartbeat that was written after the request shows that the ledger has it. Requests are kept for an hour. */
const requestKeptMs = 600_000
/** A daemon that was suspended for longer knows nothing, because rows of silent instances are deleted after a day. */
const beatKeptMs = 12 * 3_600_000
/** A daemon that has just started leaves a new timeline to those that saw the old one for this long. */
const othersTakeTimelineMs = 10_000

/** The columns of `outboxd.history`, as a statement that names it `h` selects them. */
export const historyColumnsSql = `h.lost_at is not null as "isLost", ${epochMsSql('h.recovered_at')} as "recoveredAtMs",
  h.is_new as "isNew", h.difference, h.missing`

export async function readHistory(
  db: Database,
  instanceId: string | null = null,
  { beats, request }: LookedFor = nothingLookedFor,
): Promise<HistoryReading | null> {
  const { rows } = await db.query<HistoryReading>(`select ${historyColumnsSql} from outboxd.history($1, $2, $3) h`, [
    instanceId,
    beats,
    request,
  ])
  return rows[0] ?? null
}

export class LedgerMayHaveLostData extends Error {
  override name = 'LedgerMayHaveLostData'
}

/** Says why the ledger may have lost data, as far as a command can see that; null if it has all. */
export async function findHistoryProblem(db: Database): Promise<string | null> {
  const reading = await readHistory(db)
  if (reading?.isLost) return 'a daemon has found that the ledger may have lost committed data'
  const verdict = judgeHistory(reading, { knows: false, standby: 'none' })
  return verdict.kind === 'lost' ? verdict.detail : null
}

/** @throws LedgerMayHaveLostData */
export async function assertNoDataLost(db: Database): Promise<void> {
  const problem = await findHistoryProblem(db)
  if (problem === null) return
  throw new LedgerMayHaveLostData(
    `${problem}. The ledger’s records may be out of date, so nothing was done. Run \`outboxd recover\` first`,
  )
}

/** True if COMMITs of this session wait until a standby has them on disk. */
export async function hasSynchronousCommits(db: Database): Promise<boolean> {
  const { wait } = await queryOne<{ wait: boolean }>(
    db,
    `select current_setting('synchronous_standby_names') <> ''
       and current_setting('synchronous_commit') in ('on', 'remote_apply') as wait`,
  )
  return wait
}

/** True if a COMMIT of our role has waited for 5 s. */
export async function isStandbyAwaited(db: Database): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from pg_stat_activity where datname = current_database() and application_name like 'outboxd%'
       and wait_event = 'SyncRep' and query_start < clock_timestamp() - interval '5 s' limit 1`,
  )
  return rowCount === 1
}

/** Writes where the ledger lives now. Runs in a transaction. */
async function acceptIdentity(db: Database): Promise<void> {
  await db.query(waitForNoStandby) // a promoted server has no standby yet
  await db.query(
    `update outboxd.ledger l set system_id = n.system_id, timeline = n.timeline, database_oid = n.database_oid, table_oid = n.table_oid
     from outboxd.history(null, null, null) n where l.lost_at is null`,
  )
}

/** No wait, because the next heartbeat repeats a lost write. */
const waitForNoStandby = 'set local synchronous_commit = local'

/**
 * Pauses all daemons, because the ledger may have lost records that were sent. Runs in a transaction.
 * @returns false if they are paused for that already
 */
export async function pauseForHistory(db: Database, detail: string): Promise<boolean> {
  await db.query(waitForNoStandby)
  await db.query('insert into outboxd.ledger default values on conflict (is_only) do nothing')
  const { rowCount } = await db.query(
    'update outboxd.ledger set lost_at = clock_timestamp() where lost_at is null returning lost_at',
  )
  if (rowCount === 0) return false
  await raisePause(db, 'history', `the ledger may have lost committed data: ${detail}`)
  return true
}

/**
 * Accepts the identity that the ledger has now, and ends the pause: daemons forget what they wrote before. Runs in a
 * transaction.
 */
export async function acceptHistory(db: Database): Promise<void> {
  await db.query(
    `update outboxd.ledger l set system_id = n.system_id, timeline = n.timeline, database_oid = n.database_oid, table_oid = n.table_oid,
       written_by = pg_catalog.pg_current_xact_id(), lost_at = null,
       recovered_at = greatest(clock_timestamp(), l.recovered_at + interval '1 ms')
     from outboxd.history(null, null, null) n`,
  )
  await db.query(`delete from outboxd.pause where reason in ('history', 'standby')`)
}

async function raisePause(db: Database, reason: 'history' | 'standby', detail: string): Promise<void> {
  await db.query(
    `insert into outboxd.pause (reason, detail) values ($1, $2)
     on conflict (reason) do update set detail = excluded.detail`,
    [reason, boundText(detail)],
  )
}

/** Pauses all instances while LEDGER_STANDBY is synchronous and COMMITs wait for no standby. */
async function updateStandbyPause(pool: pg.Pool, isStandbyMissed: boolean): Promise<void> {
  await inTransaction(pool, async (db) => {
    await db.query(waitForNoStandby)
    if (isStandbyMissed) await raisePause(db, 'standby', standbyMissingMessage)
    else await db.query(`delete from outboxd.pause where reason = 'standby'`)
  })
}

export const standbyMissingMessage =
  'LEDGER_STANDBY is synchronous, but COMMITs in the database wait for no synchronous standby (synchronous_standby_names, synchronous_commit). Nothing is sent. Give the server its standby again, or remove LEDGER_STANDBY'
