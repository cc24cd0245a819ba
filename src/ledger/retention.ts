import { setTimeout } from 'node:timers/promises'
import type pg from 'pg'
import type { State } from '../model.ts'
import { type Database, inTransaction } from '../postgres/database.ts'
import { isLockTimeout } from '../postgres/sqlState.ts'

export interface Retention {
  /** Null keeps records for ever. */
  days: number | null
  /** Null keeps payloads as long as their record. */
  payloadDays: number | null
}

export interface PrunedCounts {
  submissions: number
  /** Records that lost payload, body and result. */
  emptied: number
  /** Remembered ids that were deleted because their rows are gone from the outbox. */
  forgotten: number
}

/** `through`: all is done. `begun`: `goOn` ended the round. `elsewhere`: another instance prunes or captures. */
export type PruneRoundResult = 'through' | 'begun' | 'elsewhere'

export interface PruneRound {
  retention: Retention
  /** If another instance prunes, a command waits, and a daemon gives up. */
  turn: 'try' | 'wait'
  /** Called between two batches. False ends the round. */
  goOn(): boolean
  onProgress(pruned: PrunedCounts): void
}

export interface PruneDeps {
  ledger: pg.Pool
  outbox: {
    findExistingRows(outboxIds: readonly string[]): Promise<ReadonlySet<string>>
  }
}

interface Batch {
  rows: number
  isLast: boolean
}

/** A batch of this size takes some 4 ms. With `pauseMs` between batches, 370 rows are pruned in a second. */
const batchRows = 20

/** Time between two batches, which leaves the ledger to others most of the time. */
const pauseMs = 50

/** Works in short transactions. At the end, forgets ids whose rows are gone from the outbox. */
export async function runPruneRound(
  deps: PruneDeps,
  { retention: { days, payloadDays }, turn, goOn, onProgress }: PruneRound,
): Promise<PruneRoundResult> {
  const inTurn = (work: (db: Database) => Promise<number>) => async (): Promise<Batch | null> => {
    const rows = await inTransaction(deps.ledger, async (db) => ((await takeTurn(db, turn)) ? work(db) : null))
    return rows === null ? null : { rows, isLast: rows < batchRows }
  }
  const batches: Partial<Record<keyof PrunedCounts, () => Promise<Batch | null>>> = {
    // Deletes first, because deleted records need not be emptied.
    ...(days !== null && {
      submissions: inTurn((db) => pruneOldSubmissions(db, { olderThanDays: days, limit: batchRows })),
    }),
    ...(payloadDays !== null && {
      emptied: inTurn((db) => removeContentsOfOldSubmissions(db, { olderThanDays: payloadDays, limit: batchRows })),
    }),
    // Holds no lock, because the ERP's database may be slow.
    forgotten: () => forgetGoneRows(deps),
  }
  const pruned: PrunedCounts = { submissions: 0, emptied: 0, forgotten: 0 }
  for (const [what, next] of Object.entries(batches) as [keyof PrunedCounts, () => Promise<Batch | null>][])
    for (let isLast = false; !isLast; ) {
      if (!goOn()) return 'begun'
      const batch = await next()
      if (batch === null) return 'elsewhere'
      pruned[what] += batch.rows
      if (batch.rows > 0) onProgress({ ...pruned })
      isLast = batch.isLast
      if (!isLast) await setTimeout(pauseMs)
    }
  return 'through'
}

const turnMaxMs = 1_000

/** Locks 7165, because only one instance prunes, and 7161, because capture must not run at the same time. */
async function takeTurn(db: Database, turn: PruneRound['turn']): Promise<boolean> {
  if (turn === 'try') {
    const { rows } = await db.query<{ mine: boolean }>(
      "select pg_try_advisory_xact_lock(7165, 'outboxd.submission'::regclass::oid::int) as mine",
    )
    if (!rows[0]?.mine) return false
  }
  await db.query(`set local lock_timeout = ${turnMaxMs}`)
  try {
    if (turn === 'wait') await db.query("select pg_advisory_xact_lock(7165, 'outboxd.submission'::regclass::oid::int)")
    await db.query("select pg_advisory_xact_lock(7161, 'outboxd.submission'::regclass::oid::int)")
    return true
  } catch (error) {
    if (isLockTimeout(error)) return false
    throw error
  }
}

export const mayBePrunedSql = `state in ('completed', 'discarded') and not report_due`

/** Excludes records whose transaction id an operator gave, because such a record may have to be sent again. */
const mayBeEmptiedSql = `${mayBePrunedSql} and not id_by_person and emptied_at is null`

interface PruneLimits {
  olderThanDays: number
  limit: number
}

const isOld = `ended_at < now() - $1 * interval '1 day'`

/**
 * Deletes the oldest ended submissions with their events. Keeps id and end state, because capture may find their rows
 * again.
 *
 * Needs capture's lock (7161). Otherwise capture could look for a record while neither table has it.
 */
export async function pruneOldSubmissions(db: Database, { olderThanDays, limit }: PruneLimits): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `with due as (
       select id from outboxd.submission where ${mayBePrunedSql} and ${isOld} order by ended_at limit $2 for update skip locked
     ), gone as (
       delete from outboxd.submission s using due where s.id = due.id
       returning s.outbox_id, s.id, s.type, s.row_created, s.recorded_at, s.state, s.ended_at, s.transaction_id,
         s.document, s.request_digest, s.seq
     ), remembered as (
       insert into outboxd.pruned_submission (outbox_id, id, type, row_created, recorded_at, state, ended_at,
         transaction_id, document, request_digest, seq, look_at)
       select s.*, ${firstGoneRowCheckTimeSql} from gone s
       on conflict (outbox_id) do nothing
     )
     select count(*)::int as n from gone`,
    [olderThanDays, limit],
  )
  return rows[0]?.n ?? 0
}

/** Removes payload, body and result of the oldest ended submissions, also from their events. */
export async function removeContentsOfOldSubmissions(
  db: Database,
  { olderThanDays, limit }: PruneLimits,
): Promise<number> {
  const { rows } = await db.query<{ id: string }>(
    `with due as (
       select id from outboxd.submission where ${mayBeEmptiedSql} and ${isOld} order by ended_at limit $2 for update skip locked
     )
     update outboxd.submission s set payload = null, body = null, result = null, emptied_at = clock_timestamp()
     from due where s.id = due.id returning s.id`,
    [olderThanDays, limit],
  )
  // A second statement, because the log's trigger allows the change only after the submission is emptied.
  if (rows.length > 0)
    await db.query(
      `update outboxd.submission_event set detail = outboxd.without_contents(detail)
       where submission_id = any($1::uuid[]) and detail is distinct from outboxd.without_contents(detail)`,
      [rows.map(({ id }) => id)],
    )
  return rows.length
}

/** A pruned record's id is kept for these days, and longer while its row is in the outbox. */
const knownDays = 366

const firstGoneRowCheckTimeSql = `s.ended_at + interval '${knownDays} days'`

const lookAgainDays = 30

/** A check of this many rows takes the ERP's database a few milliseconds. */
const checksMax = 500

/** Forgets ids after two checks found no row. */
async function forgetGoneRows({ ledger, outbox }: PruneDeps): Promise<Batch> {
  const { rows: due } = await ledger.query<{ outboxId: string }>(
    `select outbox_id as "outboxId" from outboxd.pruned_submission where look_at <= now() order by look_at limit $1`,
    [checksMax],
  )
  if (due.length === 0) return { rows: 0, isLast: true }
  const ids = due.map(({ outboxId }) => outboxId)
  const present = await outbox.findExistingRows(ids)
  const { rows } = await ledger.query<{ n: number }>(
    `with look as (
       select * from unnest($1::text[], $2::boolean[]) l(outbox_id, is_there)
     ), gone as (
       delete from outboxd.pruned_submission p using look
       where p.outbox_id = look.outbox_id and not look.is_there and p.was_gone and p.look_at <= now()
       returning 1
     ), again as (
       update outboxd.pruned_submission p set look_at = now() + $3 * interval '1 day', was_gone = not look.is_there from look
       where p.outbox_id = look.outbox_id and (look.is_there or not p.was_gone)
     )
     select count(*)::int as n from gone`,
    [ids, ids.map((id) => present.has(id)), lookAgainDays],
  )
  return { rows: rows[0]?.n ?? 0, isLast: due.length < checksMax }
}

/**
 * CTEs that restore pruned submissions, so that their rows are written back. `back` has their ids and states. Each
 * keeps its `seq`, because a document's last record decides whether the document is sent again.
 */
export const restorePrunedSubmissionsSql = (prunedCte: string, actorAndWhoSql: string): string => `back as (
    insert into outboxd.submission (id, outbox_id, type, row_created, recorded_at, state, ended_at, transaction_id,
      document, request_digest, seq, idempotency_key, emptied_at, report_due) overriding system value
    select id, outbox_id, type, row_created, recorded_at, state, ended_at, transaction_id, document, request_digest,
      coalesce(seq, 0), gen_random_uuid(), clock_timestamp(), true
    from ${prunedCte}
    on conflict (outbox_id) do nothing
    returning id, state
  ), back_event as (
    insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who)
    select id, state, state, 0, 'restored', 'back from what was pruned: its row no longer says how it ended', ${actorAndWhoSql} from back
  ), forgotten as (
    delete from outboxd.pruned_submission p using ${prunedCte}
    where p.outbox_id = ${prunedCte}.outbox_id
  )`

export interface PrunableCount {
  state: State
  ageDays: number
  submissions: number
  toEmpty: number
}

export async function countPrunableSubmissions(
  db: Database,
  { days, payloadDays }: Retention,
): Promise<PrunableCount[]> {
  const { rows } = await db.query<PrunableCount>(
    // Uses now(), because an index scan cannot use clock_timestamp().
    `select state, floor(extract(epoch from now() - ended_at) / 86400)::int as "ageDays",
       count(*) filter (where goes)::int as submissions, count(*) filter (where not goes)::int as "toEmpty"
     from (
       select state, ended_at, true as goes from outboxd.submission
       where ${mayBePrunedSql} and ended_at < now() - $1::float8 * interval '1 day'
       union all
       select state, ended_at, false from outboxd.submission
       where ${mayBeEmptiedSql} and ended_at < now() - $2::float8 * interval '1 day'
         and coalesce(ended_at >= now() - $1::float8 * interval '1 day', true)
     ) due group by 1, 2 order by 2 desc, 1`,
    [days, payloadDays],
  )
  return rows
}

export async function readPruneOverdueMs(db: Database, { days, payloadDays }: Retention): Promise<number> {
  const { rows } = await db.query<{ overdueMs: number }>(
    `select greatest(0, extract(epoch from greatest(
       now() - (select min(ended_at) from outboxd.submission where ${mayBePrunedSql}) - $1::float8 * interval '1 day',
       now() - (select min(ended_at) from outboxd.submission where ${mayBeEmptiedSql}) - $2::float8 * interval '1 day'
     )))::float8 * 1000 as "overdueMs"`,
    [days, payloadDays],
  )
  return rows[0]?.overdueMs ?? 0
}

export interface PrunedSubmission {
  id: string
  state: State
  endedMs: number
  prunedMs: number
  transactionId: string | null
}

export async function readPrunedSubmission(db: Database, outboxId: string): Promise<PrunedSubmission | null> {
  const { rows } = await db.query<PrunedSubmission>(
    `select id, state, extract(epoch from ended_at)::float8 * 1000 as "endedMs",
       extract(epoch from pruned_at)::float8 * 1000 as "prunedMs", transaction_id as "transactionId"
     from outboxd.pruned_submission where outbox_id = $1`,
    [outboxId],
  )
  return rows[0] ?? null
}
