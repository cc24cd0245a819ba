import { boundText, escapeNonAsciiFields, textCharsMax } from '../boundText.ts'
import type { CapturedRecord, Changes, WaitingKey } from '../model/outbox.ts'
import { beginTransaction, type Database, type DatabasePool, queryOne } from '../postgres/database.ts'
import { committedToDiskSql } from '../postgres/sessionPool.ts'
import { readCurrency } from './audit/currency.ts'
import { readServedOutbox, type ServedOutbox } from './binding.ts'
import {
  decideVersions,
  documentIdOf,
  lockDocuments,
  lockEndedVersions,
  readDocuments,
  supersede,
} from './documents.ts'
import type { LedgerHistory } from './history/history.ts'
import { blocksKeySql, withKeysLockedThenReleased } from './keyOrder.ts'
import { type Actor, reasonAndAccountJsonSql } from './operator/operator.ts'
import type { InstanceLedger } from './outcomes.ts'
import { clearProblems, raiseProblems, shortenProblemSubject } from './problems.ts'
import { conflictsMax, findRowConflicts, raiseRowConflicts } from './rowConflicts.ts'

export type CaptureLedger = Pick<InstanceLedger, 'instance'> & {
  hasOwnSettings(db: Database): Promise<boolean>
  history: Pick<LedgerHistory, 'stands'>
}

/** What one round of capture may do, and what the ledger says at its start. */
export interface CaptureSession {
  /** The transaction that captures and marks. */
  db: Database
  queued: number
  waitingKeys: readonly WaitingKey[]
  /** Rows that were skipped, or are in conflict. */
  skippedIds: readonly string[]
  /** Types whose query failed for all of their rows. Due types are tried again. */
  heldTypes: readonly { type: string; isDue: boolean }[]
  /** False if the ledger may have lost commits (until `outboxd recover`), or has the settings of another daemon. */
  mayCapture: boolean
  /** Locks the documents that rows stand for. Their contents have to be read after that. */
  lockDocuments(rows: readonly Pick<CapturedRecord, 'outboxId' | 'type' | 'document'>[]): Promise<void>
  /**
   * Inserts records, in the transaction that marks their rows.
   * @param changes what becomes of a document that changes after it was sent
   * @returns the records as they were inserted, without those whose rows are in conflict, and the later ones of their keys
   */
  insert(records: readonly CapturedRecord[], changes: Changes): Promise<readonly CapturedRecord[]>
}

/** @returns false if another instance captures, or something keeps all from it */
export async function tryLockCapture(db: Database): Promise<boolean> {
  const { locked } = await queryOne<{ locked: boolean }>(
    db,
    "select pg_try_advisory_xact_lock(7161, 'outboxd.submission'::regclass::oid::int) as locked",
  )
  return locked
}

/** Keeps all instances from capturing until the end of the transaction. */
export async function lockCapture(db: Database): Promise<void> {
  await db.query("select pg_advisory_xact_lock(7161, 'outboxd.submission'::regclass::oid::int)")
}

/**
 * Runs `work` in a transaction while no other instance captures, because the rows of a key must enter the ledger in the
 * order of their ids. `work` claims rows, inserts their records and marks the rows. Resolves after the COMMIT, which
 * does all of this or nothing.
 *
 * @param sessions of the outbox's table, because a row is captured and marked in one transaction
 * @returns null if another instance has the lock
 */
export async function withCaptureLock<T>(
  { instance, hasOwnSettings, history }: CaptureLedger,
  sessions: DatabasePool,
  work: (session: CaptureSession) => Promise<T>,
): Promise<T | null> {
  await using transaction = await beginTransaction(sessions, { openingSql: committedToDiskSql })
  const { db } = transaction
  const standing = await onLedger(db, async () => {
    if (!(await tryLockCapture(db))) return null
    const mayCapture = (await history.stands(db)) && (await hasOwnSettings(db))
    return { ...(await readStanding(db)), mayCapture }
  })
  if (standing === null) return null
  const result = await work({
    ...standing,
    db,
    lockDocuments: (rows) => onLedger(db, () => lockDocuments(db, rows)),
    insert: (records, changes) => onLedger(db, () => insertRecordsWithoutConflict(db, records, instance.who, changes)),
  })
  await transaction.commit()
  return result
}

/**
 * Runs statements on the ledger in a transaction of the outbox's sessions. Their search path is the role's, so that the
 * client's triggers and types work. On the ledger no function of that path may replace the server's.
 */
export async function onLedger<T>(db: Database, work: () => Promise<T>): Promise<T> {
  await db.query(enterLedgerSql)
  const result = await work()
  await db.query(leaveLedgerSql)
  return result
}

const enterLedgerSql = `select pg_catalog.set_config('outboxd.search_path', pg_catalog.current_setting('search_path'), true);
  set local search_path = pg_catalog; set local enable_seqscan = off; set local enable_sort = off;
  set local enable_bitmapscan = off; set local lock_timeout = '3s'`
const leaveLedgerSql = `set local enable_seqscan to default; set local enable_sort to default;
  set local enable_bitmapscan to default; set local lock_timeout = 0;
  select pg_catalog.set_config('search_path', pg_catalog.current_setting('outboxd.search_path'), true)`

/** The caller has the capture lock, so that no other transaction inserts a record of these rows. */
async function insertRecordsWithoutConflict(
  db: Database,
  captured: readonly CapturedRecord[],
  who: string,
  changes: Changes,
): Promise<readonly CapturedRecord[]> {
  const conflicts = await findRowConflicts(db, captured)
  const good = leaveOutConflicts(captured, new Set(conflicts.map(({ outboxId }) => outboxId)))
  const waiting = await lockEndedVersions(db, good)
  const inserted = await withKeysLockedThenReleased(db, [...good, ...waiting], async () => {
    const { records, superseded } = decideVersions(good, await readDocuments(db, good), changes)
    await supersede(db, who, superseded)
    await insertCapturedRecords(db, records, who)
    return records
  })
  // Problems are written after records, as write-back does, because the two would deadlock.
  await raiseRowConflicts(db, conflicts)
  await clearProblems(
    db,
    'row_conflict',
    good.map(({ outboxId }) => outboxId),
  )
  return inserted
}

/** Leaves out rows in conflict, and the later rows of their keys. */
function leaveOutConflicts(
  records: readonly CapturedRecord[],
  conflictingIds: ReadonlySet<string>,
): readonly CapturedRecord[] {
  const blockedKeys = new Set<string>()
  return records.filter(({ outboxId, key }) => {
    const isInConflict = conflictingIds.has(outboxId)
    if (isInConflict && key !== null) blockedKeys.add(key)
    return !isInConflict && !(key !== null && blockedKeys.has(key))
  })
}

type Standing = Pick<CaptureSession, 'queued' | 'waitingKeys' | 'skippedIds' | 'heldTypes'>

async function readStanding(db: Database): Promise<Standing> {
  return queryOne<Standing>(
    db,
    `with line as (
       select held.key, held.length, held."isOfDocuments", (
         select s.state not in ('queued', 'sending') from outboxd.submission s
         where s.key = held.key and ${blocksKeySql('s')} order by s.seq limit 1
       ) as stuck
       from (
         select key, count(*) as length, bool_and(document is not null) as "isOfDocuments"
         from outboxd.submission where state = 'queued' and held group by key
       ) held
     )
     select (select count(*)::int from outboxd.submission where state = 'queued') as queued,
       (select coalesce(json_agg(json_build_object('key', key, 'length', length, 'isHeld', coalesce(stuck, false),
          'isOfDocuments', "isOfDocuments")), '[]')
        from line) as "waitingKeys",
       array(select subject from outboxd.problem where ${isSkippedSql} or ${isWaitingConflictSql}) as "skippedIds",
       (select coalesce(json_agg(json_build_object('type', subject, 'isDue', retry_at <= clock_timestamp())), '[]')
        from outboxd.problem where kind = 'source_failing') as "heldTypes"`,
  )
}

/**
 * Inserts captured records in their order. A record already in the ledger stays, and its row is written back again,
 * because the row says again that it waits.
 *
 * Records with a key start held. The caller releases them in the same transaction.
 *
 * @param recoverer null for a normal capture
 */
export async function insertCapturedRecords(
  db: Database,
  records: readonly CapturedRecord[],
  who: string,
  recoverer: Actor | null = null,
): Promise<void> {
  await db.query(
    `with record as (
       select * from json_to_recordset($1) as r(ord int, id uuid, "outboxId" text, type text, key text, resource text,
         payload text, body text, tracked boolean, "sendsOwnId" boolean, "idempotencyKey" uuid, "createdAt" timestamptz,
         created text, error text, doubt text, discarded text, document text, digest text, "changedAfterSent" boolean,
         amounts jsonb, currency text)
     ), kept as (
       insert into outboxd.submission as s (id, outbox_id, type, key, resource, payload, body, tracked, sends_own_id,
         idempotency_key, recorded_at, row_created, state, held, due_at, error, ended_at, in_doubt, may_have_arrived, report_due,
         document, request_digest, changed_after_sent)
       select id, "outboxId", type, key, resource, payload, body, tracked, "sendsOwnId", "idempotencyKey",
         coalesce("createdAt", clock_timestamp()), created,
         case when discarded is not null then 'discarded' when error is not null then 'rejected' when doubt is not null then 'uncertain' else 'queued' end,
         key is not null and ends is null, case when ends is null then now() end,
         ends, case when ends is not null then clock_timestamp() end,
         discarded is null and error is null and (doubt is not null or $3),
         discarded is null and error is not null and (doubt is not null or "changedAfterSent"), $3 or ends is not null,
         document, digest, "changedAfterSent"
       from record r cross join lateral (select coalesce(discarded, error, doubt) as ends) why order by ord
       on conflict (outbox_id) do nothing
       returning s.id, s.state
     ), known as (
       update outboxd.submission s set report_due = true
       from record r where s.outbox_id = r."outboxId" and s.id <> r.id and not s.report_due
     )
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, message, actor, who, detail, amounts)
       select id, null, state, 0, case when $3 then 'recovered' else 'captured' end,
         case when $3 then 'recovered as ' || state when state = 'uncertain' then 'captured as uncertain'
           when state = 'discarded' then discarded when "changedAfterSent" then error when state = 'rejected' then 'did not map' end,
         case when $3 then 'operator' else 'outboxd' end, $2,
         nullif(jsonb_strip_nulls(jsonb_build_object('currency', currency)) || ${reasonAndAccountJsonSql('$4', '$5')}, '{}'),
         amounts
       from kept join record using (id)`,
    [JSON.stringify(records.map(stored)), who, recoverer !== null, recoverer?.reason, recoverer?.account],
  )
}

function stored({ fieldErrors: _, ...record }: CapturedRecord, ord: number) {
  return {
    ord,
    ...escapeNonAsciiFields(record),
    document: documentIdOf(record),
    error: record.error === null ? null : boundText(record.error, textCharsMax.errors),
    changedAfterSent: record.changedAfterSent ?? false,
    currency: readCurrency(record.body, record.amounts ?? null),
  }
}

/** Problems whose rows are left out of claims. Rows whose filter fails have no `retry_at`: their daemon knows them. */
const isSkippedSql = "kind = 'row_skipped' and retry_at is not null"
const isWaitingConflictSql = "kind = 'row_conflict' and retry_at > clock_timestamp()"

/** The query for new rows lists all skipped ids, so they must be few. */
export const skippedMax = 1_000
const firstRetryMs = 10_000
const retryMaxMs = 3_600_000

/**
 * Skips rows for 10 s, then twice as long each time, up to an hour.
 *
 * @param detail why, without data of the client
 */
export async function skipRows(ledger: Database, outboxIds: readonly string[], detail: string): Promise<void> {
  await ledger.query(
    `insert into outboxd.problem as p (kind, subject, detail, retry_at)
     select 'row_skipped', id, $2, clock_timestamp() + $3 * interval '1 ms' from unnest($1::text[]) id
     on conflict (kind, subject) do update set detail = excluded.detail, seen_at = excluded.seen_at, times = p.times + 1,
       retry_at = clock_timestamp() + least($4, $3 * 2 ^ least(p.times, 20)) * interval '1 ms'`,
    [outboxIds.map(shortenProblemSubject), detail, firstRetryMs, retryMaxMs],
  )
}

/** Lets the daemon capture rows one by one, wherever they lie in the table. */
export async function captureRowsNow(db: Database, outboxIds: readonly string[]): Promise<void> {
  await db.query(
    `insert into outboxd.problem (kind, subject, detail, retry_at)
     select 'row_skipped', id, 'an operator has it captured', clock_timestamp() from unnest($1::text[]) id
     on conflict (kind, subject) do update set retry_at = excluded.retry_at`,
    [outboxIds.map(shortenProblemSubject)],
  )
}

/** Time between two tries of a failing type, because each may write a hundred errors into the ERP's server log. */
const heldTypeMs = 30_000

/**
 * Stops the capture of a type for `heldTypeMs`, on all instances.
 * @param detail why, without the client's data
 */
export const stopCaptureOfTypeBriefly = (db: Database, type: string, detail: string): Promise<void> =>
  raiseProblems(db, [{ kind: 'source_failing', subject: type, detail, retryInMs: heldTypeMs }])

export const resumeCaptureOfTypes = (db: Database, types: readonly string[]): Promise<void> =>
  clearProblems(db, 'source_failing', types)

/** What the ledger knows of why a waiting row is not captured. */
export interface CaptureObstacles {
  /** The problem of the row itself. */
  ofRow: string | null
  /** The problem of all rows of its type. */
  ofType: string | null
  /** True if captured records of its key wait. After some of them, the key gets no further rows. */
  isBehindRecords: boolean
}

export function readCaptureObstacles(
  db: Database,
  { outboxId, type, key }: Pick<CapturedRecord, 'outboxId' | 'type' | 'key'>,
): Promise<CaptureObstacles> {
  return queryOne<CaptureObstacles>(
    db,
    `select
       (select detail from outboxd.problem
        where kind in ('row_skipped', 'row_locked', 'row_conflict') and subject = $1 limit 1) as "ofRow",
       (select detail from outboxd.problem where kind = 'source_failing' and subject = $2) as "ofType",
       exists (select from outboxd.submission
         where key = $3 and state = 'queued' and held and document is null) as "isBehindRecords"`,
    [shortenProblemSubject(outboxId), shortenProblemSubject(type), key],
  )
}

/** The capture work that is due besides new rows. */
interface DueCaptureRetries {
  /** A row that was skipped. */
  dueId: string | null
  /** True if the query of a type failed, so that its rows have to be tried. */
  hasHeldTypes: boolean
  /** Why no new rows may be captured, or null. */
  whyStopped: string | null
  served: ServedOutbox
}

/** Runs one statement only, because an idle daemon calls this function every second. */
export async function readDueCaptureRetries(db: Database): Promise<DueCaptureRetries> {
  const { dueId, hasHeldTypes, skipped, conflicts, ...served } = await readServedOutbox<
    Omit<DueCaptureRetries, 'served' | 'whyStopped'> & { skipped: number; conflicts: number }
  >(
    db,
    `(select subject from outboxd.problem where ${isSkippedSql} and retry_at <= clock_timestamp()
      order by retry_at limit 1) as "dueId"`,
    `exists (select from outboxd.problem where kind = 'source_failing') as "hasHeldTypes"`,
    `(select count(*)::int from outboxd.problem where ${isSkippedSql}) as skipped`,
    // Conflicts of outcomes that are to be written back are of captured rows.
    `(select count(*)::int from outboxd.problem p where ${isWaitingConflictSql} and not exists (
        select from outboxd.submission s where s.outbox_id = p.subject and s.report_due
      )) as conflicts`,
  )
  return { dueId, hasHeldTypes, served, whyStopped: findWhyStopped(skipped, conflicts) }
}

function findWhyStopped(skipped: number, conflicts: number): string | null {
  if (skipped >= skippedMax)
    return `${skipped} rows of the outbox are skipped, so nothing more is captured. \`outboxd status\` says why they fail`
  if (conflicts >= conflictsMax)
    return `at least ${conflictsMax} rows of the outbox are not those that were captured under their ids, so nothing more is captured. \`outboxd status\` says what to do`
  return null
}
