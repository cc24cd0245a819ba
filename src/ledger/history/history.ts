import type pg from 'pg'
import { boundText } from '../../boundText.ts'
import type { EventActor } from '../../model.ts'
import { type Database, epochMsSql, inTransaction } from '../../postgres/database.ts'
import { requestOverAfterMs } from '../../requestDurations.ts'
import { countLimitAsSpent } from '../budget.ts'
import { clearProblems, raiseProblems } from '../problems.ts'
import { readLongestRequestTimeoutMs } from '../settings.ts'
import {
  type DataLossVerdict,
  type HistoryIdentity,
  type HistoryReading,
  judgeDataLoss,
  type LedgerStandby,
  type RememberedHistory,
  type RowSearchResult,
} from './judgeDataLoss.ts'

export interface LastClaim {
  id: string
  outboxId: string
  attempt: number
}

/** What this instance has seen in the ledger, which must still have it. */
export interface InstanceMemory {
  history: RememberedHistory | null
  claim: LastClaim | null
  safeLsn: string | null
  hasRecords: boolean
}

export const emptyInstanceMemory: InstanceMemory = { history: null, claim: null, safeLsn: null, hasRecords: false }

/** True if COMMITs wait until a standby has them on disk. */
const commitsWaitSql = `(current_setting('synchronous_standby_names') <> ''
  and current_setting('synchronous_commit') in ('on', 'remote_apply'))`

const identitySql = (row: 'h' | 'n'): string =>
  `json_build_object('systemId', ${row}.system_id, 'timeline', ${row}.timeline, 'databaseOid', ${row}.database_oid, 'ledgerOid', ${row}.ledger_oid)`

/**
 * `hasLastClaim` accepts emptied records, because a restored record has no attempts. `isUnused` checks requests first,
 * because a search for records reads past pruned rows that are not vacuumed yet.
 */
const viewSql = `
  ${identitySql('h')} as agreed, ${identitySql('n')} as now,
  ${epochMsSql('h.agreed_at')} as "agreedAtMs", coalesce(h.agreed_actor = 'operator', false) as "isByPerson",
  ${epochMsSql('clock_timestamp()')} - ${epochMsSql('h.marked_at')} as "markedForMs",
  n.safe_lsn::text as "safeLsn", n.has_target as "hasTarget",
  coalesce(h.written_by::text::numeric % 4294967296 <> h.xmin::text::numeric, true)
    or h.marked_event is not null and not exists (select from outboxd.submission_event where id = h.marked_event) as "isPutBack",
  ${commitsWaitSql} as "isSynchronous", h.found_at is not null as "isFound",
  ($1::uuid is null
    or exists (select from outboxd.submission where id = $1 and (attempt >= $2 or emptied_at is not null))
    or exists (select from outboxd.pruned_submission where outbox_id = $3 and id = $1)
  ) as "hasLastClaim",
  coalesce(n.safe_lsn >= $4::pg_lsn, true) as "isPastSeen",
  not exists (select from outboxd.request) and not exists (select from outboxd.submission) as "isUnused",
  case when $5::boolean then false else not exists (select from outboxd.pruned_submission) and not exists (select from outboxd.submission) end as "isEmpty",
  exists (select from outboxd.problem where kind = 'ledger_history' and subject = 'standby') as "isStandbyMissed"`

async function readHistory(
  db: Database,
  { claim, safeLsn, hasRecords }: InstanceMemory,
): Promise<HistoryReading | null> {
  const { rows } = await db.query<HistoryReading>(`select ${viewSql} from outboxd.history h, outboxd.history_now() n`, [
    claim?.id ?? null,
    claim?.attempt ?? null,
    claim?.outboxId ?? null,
    safeLsn,
    hasRecords,
  ])
  return rows[0] ?? null
}

export interface JudgedHistory {
  reading: HistoryReading | null
  verdict: DataLossVerdict
}

/** Reads rows of the outbox only if the ledger has no records. */
export async function readAndJudgeHistory(
  db: Database,
  remembered: InstanceMemory,
  {
    standby,
    findRowNamingTransaction,
  }: { standby: LedgerStandby; findRowNamingTransaction(): Promise<RowSearchResult> },
): Promise<JudgedHistory> {
  const reading = await readHistory(db, remembered)
  if (reading === null) return { reading, verdict: { kind: 'found', detail: rowIsGone } }
  const { history } = remembered
  const verdict = judgeDataLoss(reading, { memory: history, standby, named: { kind: 'unknown' } })
  if (verdict.kind !== 'asks') return { reading, verdict }
  return {
    reading,
    verdict: judgeDataLoss(reading, { memory: history, standby, named: await findRowNamingTransaction() }),
  }
}

const rowIsGone = 'the row of outboxd.history is gone'

export class LedgerMayHaveLostData extends Error {
  override name = 'LedgerMayHaveLostData'
}

/**
 * Call it before an operator's decision: `recover` believes a row only while no operator has decided its record.
 *
 * @throws LedgerMayHaveLostData
 */
export async function assertNoDataLost(db: Database): Promise<void> {
  const { verdict } = await readAndJudgeHistory(db, emptyInstanceMemory, {
    standby: 'none',
    findRowNamingTransaction: async () => ({ kind: 'none' }),
  })
  if (verdict.kind === 'waits')
    throw new LedgerMayHaveLostData(
      'the ledger may have lost data, so its records may be out of date, and this was not done. Run `outboxd recover` first',
    )
  if (verdict.kind === 'found')
    throw new LedgerMayHaveLostData(
      `${verdict.detail}. The ledger’s records may be out of date, so this was not done. Start a daemon, wait until it has looked at the ledger, and do what \`outboxd status\` says. If none can start, first run \`outboxd recover --restored\``,
    )
}

export async function hasSynchronousCommits(db: Database): Promise<boolean> {
  const { rows } = await db.query<{ wait: boolean }>(`select ${commitsWaitSql} as wait`)
  return rows[0]?.wait ?? false
}

/** True if a COMMIT of our role has waited for 5 s. */
export async function isStandbyAwaited(db: Database): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from pg_stat_activity where datname = current_database() and application_name like 'outboxd%'
       and wait_event = 'SyncRep' and query_start < clock_timestamp() - interval '5 s' limit 1`,
  )
  return rowCount === 1
}

/** True if a daemon or an operator found that the ledger may have lost data, and no operator has decided yet. */
export const mayHaveLostDataSql = 'exists (select from outboxd.history where id and found_at is not null)'

export interface SuspectedLoss {
  detail: string
  by: string
  atMs: number
  lastMarkMs: number
  agreed: HistoryIdentity
  now: HistoryIdentity
}

export const ledgerRestoredMessage = (who: string): string => `${who} says that the ledger was restored from a backup`

/** @param saidRestoredBy the operator who says that the ledger was restored, if no daemon has found it */
export async function readSuspectedLoss(
  db: Database,
  saidRestoredBy: string | null = null,
): Promise<SuspectedLoss | null> {
  const { rows } = await db.query<SuspectedLoss>(
    `select coalesce(h.found, $1) as detail, coalesce(h.found_by, $2) as by,
       ${epochMsSql('coalesce(h.found_at, clock_timestamp())')} as "atMs", ${epochMsSql('h.marked_at')} as "lastMarkMs",
       ${identitySql('h')} as agreed, ${identitySql('n')} as now
     from outboxd.history h, outboxd.history_now() n where coalesce(h.found, $1) is not null`,
    [saidRestoredBy === null ? null : ledgerRestoredMessage(saidRestoredBy), saidRestoredBy],
  )
  return rows[0] ?? null
}

/** Notes when the history was last found unchanged, and the last event, which must exist from now on. */
export async function noteHistorySeenUnchanged(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, async (db) => {
    await db.query(waitForNoStandby)
    await db.query(
      `update outboxd.history h set marked_at = clock_timestamp(),
         marked_event = (
           select id from (select id, at from outboxd.submission_event order by id desc limit 1) e
           where at between clock_timestamp() - interval '12 h' and clock_timestamp() -- an older one may be pruned
         ),
         system_id = coalesce(h.system_id, n.system_id), timeline = coalesce(h.timeline, n.timeline)
       from outboxd.history_now() n
       where h.found_at is null and h.database_oid = n.database_oid and h.ledger_oid = n.ledger_oid
         and coalesce(h.system_id = n.system_id, true) and coalesce(h.timeline = n.timeline, true)`,
    )
  })
}

/** No wait, because the next check repeats a lost write. */
const waitForNoStandby = 'set local synchronous_commit = local'

const kind = 'ledger_history'
const standby = 'standby'

/**
 * Stops all instances, because the ledger may have lost records that were sent. The whole limit counts as spent until a
 * window after the last possible request, because the ledger may have lost requests, too. Runs in a transaction.
 *
 * @param overAfterMs the time until the caller's last request is over
 */
export async function raiseHistoryProblem(
  db: Database,
  detail: string,
  { actor, who, overAfterMs }: { actor: EventActor; who: string; overAfterMs: number },
): Promise<void> {
  await db.query(waitForNoStandby)
  const { rows } = await db.query<{ lastMark: string }>(
    `insert into outboxd.history as h (system_id, timeline, database_oid, ledger_oid, found_at, found, found_by)
     select system_id, timeline, database_oid, ledger_oid, clock_timestamp(), $1, $2 from outboxd.history_now()
     on conflict (id) do update set found_at = excluded.found_at, found = excluded.found, found_by = excluded.found_by
     where h.found_at is null
     returning to_char(marked_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as "lastMark"`,
    [detail, who],
  )
  if (rows[0] === undefined) return
  // Before the pause, as claims lock. Instances may have different request timeouts.
  const longestMs = requestOverAfterMs((await readLongestRequestTimeoutMs(db)) ?? 0)
  await countLimitAsSpent(db, Math.max(overAfterMs, longestMs))
  await raisePause(db, 'history', `the ledger may have lost committed data: ${detail}`)
  const since =
    actor === 'operator'
      ? 'The ledger may not know what was sent since its backup'
      : `The ledger may not know what was sent after ${rows[0].lastMark}, when a daemon last found it unchanged`
  const words = `${detail}. ${since}. \`outboxd recover --dry-run\` shows what may have been sent, \`outboxd recover --as uncertain\` settles it`
  await raiseProblems(db, [{ kind, subject: '', detail: words, retryInMs: null }])
}

/** Runs in a transaction. */
export async function acceptHistoryAsDaemon(db: Database, who: string): Promise<void> {
  await db.query(waitForNoStandby) // a promoted server has no standby yet
  await db.query(
    `update outboxd.history h set ${agreedSql}, agreed_actor = 'daemon', agreed_by = $1 from outboxd.history_now() n where h.found_at is null`,
    [who],
  )
}

/** @returns false if the operator has seen a different loss */
export async function lockSuspectedLossIfUnchanged(db: Database, seenAtMs: number): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from outboxd.history where abs(${epochMsSql('found_at')} - $1) < 1 for update`,
    [seenAtMs],
  )
  return (rowCount ?? 0) > 0
}

/** Runs in a transaction. */
export async function acceptLossAsOperator(db: Database, who: string, isOutboxInDoubt: boolean): Promise<void> {
  await db.query(
    `update outboxd.history h set ${agreedSql}, agreed_actor = 'operator', agreed_by = $1,
       doubtful_before = case when $2::boolean then h.found_at + ${clockSkewSql} else h.doubtful_before end
     from outboxd.history_now() n`,
    [who, isOutboxInDoubt],
  )
  await db.query(`delete from outboxd.pause where reason in ('history', 'standby')`)
  await clearProblems(db, kind, null)
}

/** The clocks of the ledger and of the hosts that write rows differ by at most this. */
export const clockSkewMaxMs = 5_000
const clockSkewSql = `interval '${clockSkewMaxMs} ms'`

/** Instances compare `agreed_at`, so this time must rise even if the clock was set back. */
const agreedSql = `system_id = n.system_id, timeline = n.timeline, database_oid = n.database_oid, ledger_oid = n.ledger_oid,
  agreed_at = greatest(clock_timestamp(), h.agreed_at + interval '1 ms'), marked_at = clock_timestamp(),
  marked_event = null, found_at = null, found = null, found_by = null`

/** Pauses all instances while LEDGER_STANDBY is synchronous and COMMITs wait for no standby. */
export async function updateStandbyPause(pool: pg.Pool, isStandbyMissed: boolean): Promise<void> {
  await inTransaction(pool, async (db) => {
    await db.query(waitForNoStandby)
    const { rowCount } = await db.query('select from outboxd.history where found_at is null for share')
    if (rowCount === 0) return
    if (!isStandbyMissed) {
      await db.query(`delete from outboxd.pause where reason = 'standby'`)
      return clearProblems(db, kind, [standby])
    }
    await raisePause(db, 'standby', standbyMissingMessage)
    await raiseProblems(db, [{ kind, subject: standby, detail: standbyMissingMessage, retryInMs: null }])
  })
}

async function raisePause(db: Database, reason: 'history' | 'standby', detail: string): Promise<void> {
  await db.query(
    `insert into outboxd.pause (reason, detail) values ($1, $2)
     on conflict (reason) do update set detail = excluded.detail`,
    [reason, boundText(detail)],
  )
}

export const standbyMissingMessage =
  'LEDGER_STANDBY is synchronous, but COMMITs in the database wait for no synchronous standby (synchronous_standby_names, synchronous_commit). Nothing is sent. Give the server its standby again, or remove LEDGER_STANDBY'
