import { type Database, epochMsSql, queryOne } from '../../postgres/database.ts'
import type { Resource } from '../../resources.ts'
import { LedgerMayHaveLostData } from '../history/history.ts'
import { type PollQueue, withdrawAllPolls } from '../queue.ts'
import {
  hasTransactionIdSql,
  lockTransactionIds,
  readTransactionHolders,
  type TransactionRef,
  toTransactionName,
} from '../transactions.ts'
import { type Actor, reasonAndAccountJsonSql } from './operator.ts'
import { settleArrivedRecords } from './resolveSubmission.ts'

/**
 * Waits for the claims that are being committed, in the order in which they lock. The answers to polls that are under
 * way are dropped.
 *
 * @returns how many records are polled on
 */
export async function withdrawClaims(db: Database): Promise<number> {
  await withdrawAllPolls(db)
  await db.query('select from outboxd.ledger for update')
  const { rowCount } = await db.query(
    `update outboxd.submission set in_doubt = true, resubmissions = greatest(resubmissions, 3), revision = revision + 1
     where state = 'accepted'`,
  )
  return rowCount ?? 0
}

export interface RecordInDoubt {
  id: string
  outboxId: string
  resource: Resource
  revision: number
  seq: string
}

/** Names the ledger's row as it is now. Outside a transaction, because its lock would stop a restore, and all who wait for that. */
export async function readLedgerVersion(db: Database): Promise<string> {
  const { version } = await queryOne<{ version: string }>(
    db,
    `select xmin::text || ' ' || 'outboxd.ledger'::regclass::oid as version from outboxd.ledger`,
  )
  return version
}

/**
 * Locks the ledger's row. If the ledger was restored since the outbox was compared with it, the recovery would accept a
 * loss that nobody has looked at.
 *
 * @throws LedgerMayHaveLostData
 */
export async function assertLedgerIsSame(db: Database, version: string): Promise<void> {
  await db.query('select from outboxd.ledger for no key update')
  if ((await readLedgerVersion(db)) === version) return
  throw new LedgerMayHaveLostData(
    'the ledger was restored or changed while `outboxd recover` read the outbox. Nothing was done. Run it again',
  )
}

/** Reads the next records that may have been sent, or sent again, without the ledger knowing. */
export async function readRecordsInDoubt(db: Database, afterSeq: string, limit: number): Promise<RecordInDoubt[]> {
  const { rows } = await db.query<RecordInDoubt>(
    `select id, outbox_id as "outboxId", resource, revision, seq::text as seq from outboxd.submission
     where state in ('queued', 'sending', 'uncertain', 'failed', 'rejected') and body is not null and seq > $1
     order by submission.seq limit $2`,
    [afterSeq, limit],
  )
  return rows
}

/**
 * Polls records by the transactions that their rows name. Leaves out an id that another record has, that two of them
 * name, or that this record had before.
 *
 * @returns how many are polled
 */
export async function trackNamedRecords(
  db: Database,
  queue: PollQueue,
  named: readonly (RecordInDoubt & TransactionRef)[],
  actor: Actor,
): Promise<number> {
  if (named.length === 0) return 0
  await lockTransactionIds(db, named)
  const { rows } = await db.query<{ id: string }>(
    `select r.id from json_to_recordset($1) as r(id uuid, "transactionId" text)
     where exists (
       select from outboxd.submission_event e where e.submission_id = r.id
         and (${hasTransactionIdSql('r."transactionId"', "(e.detail ->> 'transactionId')")}
           or ${hasTransactionIdSql('r."transactionId"', "(e.detail -> 'former' ->> 'transactionId')")})
     )`,
    [JSON.stringify(named)],
  )
  const former = new Set(rows.map(({ id }) => id))
  const taken = new Set((await readTransactionHolders(db, named)).map(toTransactionName))
  const times = Map.groupBy(named, toTransactionName)
  const arrivals = named.filter((each) => {
    const name = toTransactionName(each)
    return !former.has(each.id) && !taken.has(name) && times.get(name)?.length === 1
  })
  return (await settleArrivedRecords(db, queue, arrivals, { how: 'recovered', actor })).length
}

export interface SettledRecords {
  queued: number
  sending: number
  /** Ended records that may have been sent again since. */
  ended: number
}

const doubt = 'the ledger lost data and had this record as unsent. The record may have arrived'

/**
 * Makes records uncertain that may have been sent. From now on every record may have arrived, so that none is sent
 * again without a person.
 */
export async function settleRecordsInDoubt(db: Database, actor: Actor): Promise<SettledRecords> {
  const counts = { queued: 0, sending: 0 }
  for (;;) {
    const { rows } = await db.query<{ former: 'queued' | 'sending' }>(settleSql, [
      actor.who,
      actor.reason,
      actor.account,
      doubt,
    ])
    for (const { former } of rows) counts[former] += 1
    if (rows.length < settledAtOnceMax) break
  }
  await db.query(`update outboxd.submission set in_doubt = true where state = 'uncertain' and not in_doubt`)
  let ended = 0
  for (;;) {
    const { rowCount } = await db.query(
      `update outboxd.submission set may_have_arrived = true where id = any(array(
         select id from outboxd.submission
         where state in ('failed', 'rejected', 'discarded') and not may_have_arrived and emptied_at is null
           -- A change that a later version took the place of, and that has no request, counts as little as before.
           and not (state = 'discarded' and document is not null and attempt = 0 and body is null)
         limit ${settledAtOnceMax}
       ))`,
    )
    ended += rowCount ?? 0
    if ((rowCount ?? 0) < settledAtOnceMax) break
  }
  return { ...counts, ended }
}

/** Bounds the time of one statement. */
const settledAtOnceMax = 5_000

const settleSql = `
  with doubtful as (
    select s.id, s.state from outboxd.submission s where s.state in ('queued', 'sending')
    order by s.id limit ${settledAtOnceMax} for update of s
  ), taken as (
    update outboxd.submission s set revision = s.revision + 1, state = 'uncertain', in_doubt = true, due_at = null,
      held = false, error = $4, ended_at = clock_timestamp(), probing = false,
      foreign_status = null, claim_id = null, instance_id = null, report_due = true
    from doubtful where s.id = doubtful.id returning s.id, doubtful.state as former, s.attempt
  ), event as (
    insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who, detail)
    select id, former, 'uncertain', attempt, 'recovered', 'recovered as uncertain', 'operator', $1, ${reasonAndAccountJsonSql('$2', '$3')}
    from taken
  )
  select former from taken`

/** Why everything is paused until `recover`; null if it is not. */
export async function readHistoryPause(db: Database): Promise<{ detail: string; sinceMs: number } | null> {
  const { rows } = await db.query<{ detail: string; sinceMs: number }>(
    `select coalesce(p.detail, 'the ledger may have lost committed data') as detail, ${epochMsSql('l.lost_at')} as "sinceMs"
     from outboxd.ledger l left join outboxd.pause p on p.reason = 'history'
     where l.lost_at is not null`,
  )
  return rows[0] ?? null
}
