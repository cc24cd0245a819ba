import type { State } from '../model/submission.ts'
import { type Database, queryOne } from '../postgres/database.ts'
import { isLockTimeout } from '../postgres/sqlState.ts'
import { lockCapture } from './capture.ts'
import type { Settings } from './settings.ts'

export interface Retention {
  /** Null keeps records for ever. */
  days: number | null
  /** Null keeps payloads as long as their record. */
  payloadDays: number | null
}

export const toRetention = (settings: Settings): Retention => ({
  days: Number(settings.RETENTION_DAYS) || null,
  payloadDays: Number(settings.RETENTION_PAYLOAD_DAYS) || null,
})

export interface PrunedCounts {
  submissions: number
  /** Records that lost payload, body and result. */
  emptied: number
}

const turnMaxMs = 1_000

/** Locks 7165, because only one instance prunes, and 7161, because capture must not run at the same time. */
export async function takePruneTurn(db: Database, turn: 'try' | 'wait'): Promise<boolean> {
  if (turn === 'try') {
    const { mine } = await queryOne<{ mine: boolean }>(
      db,
      "select pg_try_advisory_xact_lock(7165, 'outboxd.submission'::regclass::oid::int) as mine",
    )
    if (!mine) return false
  }
  await db.query(`set local lock_timeout = ${turnMaxMs}`)
  try {
    if (turn === 'wait') await db.query("select pg_advisory_xact_lock(7165, 'outboxd.submission'::regclass::oid::int)")
    await lockCapture(db)
    return true
  } catch (error) {
    if (isLockTimeout(error)) return false
    throw error
  }
}

export const mayBePrunedSql = `state in ('completed', 'discarded') and not report_due`

/** Excludes records whose transaction id an operator gave, because such a record may have to be sent again. */
export const mayBeEmptiedSql = `${mayBePrunedSql} and not id_by_person and emptied_at is null`

export interface PruneLimits {
  olderThanDays: number
  limit: number
}

/** True if a submission ended more than $1 days ago. */
export const isOldSql = `ended_at < now() - $1::float8 * interval '1 day'`

/** Deletes submissions with their events. Of a document, what was sent last stays. */
export async function deleteSubmissions(db: Database, ids: readonly string[]): Promise<number> {
  const { n } = await queryOne<{ n: number }>(
    db,
    `with gone as (
       delete from outboxd.submission s where s.id = any($1::uuid[])
       returning s.id, s.outbox_id, s.document, s.request_digest, s.was_sent, s.seq
     ), newest as (
       select distinct on (document) document, outbox_id, request_digest, seq from gone
       where document is not null and was_sent order by document, seq desc
     ), kept as (
       update outboxd.document d set sent_seq = n.seq, sent_outbox_id = n.outbox_id, sent_digest = n.request_digest
       from newest n where d.id = n.document and (d.sent_seq is null or d.sent_seq < n.seq)
     )
     select count(*)::int as n from gone`,
    [ids],
  )
  return n
}

/** Removes payload, body and result of the oldest ended submissions, also from their events. */
export async function removeContentsOfOldSubmissions(
  db: Database,
  { olderThanDays, limit }: PruneLimits,
): Promise<number> {
  const { n } = await queryOne<{ n: number }>(
    db,
    `with due as (
       select id from outboxd.submission where ${mayBeEmptiedSql} and ${isOldSql} order by ended_at limit $2 for update skip locked
     ), emptied as (
       update outboxd.submission s set payload = null, body = null, result = null, emptied_at = clock_timestamp()
       from due where s.id = due.id returning s.id
     ), event as (
       -- what replays have kept of what was sent before
       update outboxd.submission_event e set detail = e.detail #- '{former,body}' #- '{former,payload}'
       from emptied where e.submission_id = emptied.id and e.detail -> 'former' ?| array['body', 'payload']
     )
     select count(*)::int as n from emptied`,
    [olderThanDays, limit],
  )
  return n
}

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
