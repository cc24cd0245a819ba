import { type Database, epochMsSql } from '../../postgres/database.ts'
import {
  type HistoryIdentity,
  type HistoryMemory,
  type HistoryVerdict,
  type HistoryView,
  isHistoryAgreedSince,
  judgeDataLoss,
  type LedgerStandby,
  type NamedRow,
} from './judgeDataLoss.ts'

export interface LastClaim {
  id: string
  outboxId: string
  attempt: number
}

/** The data that the ledger must still have, as this instance knows it. */
export interface InstanceMemory {
  memory: HistoryMemory | null
  claim: LastClaim | null
  safeLsn: string | null
  hasRecords: boolean
}

export const emptyInstanceMemory: InstanceMemory = { memory: null, claim: null, safeLsn: null, hasRecords: false }

/** True if COMMITs wait until a standby has them on disk. */
const commitsWaitSql = `(current_setting('synchronous_standby_names') <> ''
  and current_setting('synchronous_commit') in ('on', 'remote_apply'))`

const identitySql = (row: 'h' | 'n'): string =>
  `json_build_object('systemId', ${row}.system_id, 'timeline', ${row}.timeline, 'databaseOid', ${row}.database_oid, 'ledgerOid', ${row}.ledger_oid)`

/**
 * Selects a `HistoryView`. A record that was pruned and came back has no attempts. Slots come first, because the search
 * for records reads past pruned rows that are not vacuumed yet.
 */
const viewSql = `
  ${identitySql('h')} as agreed, ${identitySql('n')} as now,
  ${epochMsSql('h.agreed_at')} as "agreedAtMs", h.agreed_by like 'operator%' as "isByPerson",
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
  not exists (select from outboxd.slot where lease > 0) and not exists (select from outboxd.submission) as "isUnused",
  case when $5::boolean then false else not exists (select from outboxd.pruned_submission) and not exists (select from outboxd.submission) end as "isEmpty",
  exists (select from outboxd.problem where kind = 'ledger_history' and subject = 'standby') as "isStandbyMissed"`

export async function readHistory(
  db: Database,
  { claim, safeLsn, hasRecords }: InstanceMemory,
): Promise<HistoryView | null> {
  const { rows } = await db.query<HistoryView>(`select ${viewSql} from outboxd.history h, outboxd.history_now() n`, [
    claim?.id ?? null,
    claim?.attempt ?? null,
    claim?.outboxId ?? null,
    safeLsn,
    hasRecords,
  ])
  return rows[0] ?? null
}

export interface JudgedHistory {
  view: HistoryView | null
  verdict: HistoryVerdict
}

/** Reads the outbox's rows only if they matter. */
export async function readAndJudgeHistory(
  db: Database,
  remembered: InstanceMemory,
  { standby, findNamed }: { standby: LedgerStandby; findNamed(): Promise<NamedRow> },
): Promise<JudgedHistory> {
  const view = await readHistory(db, remembered)
  if (view === null) return { view, verdict: { kind: 'found', detail: rowIsGone } }
  const memory = remembered.memory !== null && isHistoryAgreedSince(view, remembered.memory) ? null : remembered.memory
  const verdict = judgeDataLoss(view, { memory, standby, named: { kind: 'unknown' } })
  if (verdict.kind !== 'asks') return { view, verdict }
  return { view, verdict: judgeDataLoss(view, { memory, standby, named: await findNamed() }) }
}

const rowIsGone = 'the row of outboxd.history is gone'

export async function hasSynchronousCommits(db: Database): Promise<boolean> {
  const { rows } = await db.query<{ wait: boolean }>(`select ${commitsWaitSql} as wait`)
  return rows[0]?.wait ?? false
}

/** True if the ledger may have lost data, and no operator has decided yet. */
export const mayHaveLostDataSql = 'exists (select from outboxd.history where id and found_at is not null)'

export interface SuspectedLoss {
  detail: string
  by: string
  atMs: number
  lastMarkMs: number
  agreed: HistoryIdentity
  now: HistoryIdentity
}

export const ledgerRestoredMessage = (who: string): string => `${who} says that it was restored from a backup`

/** @param restoredBy the operator who says that the ledger was restored, if no daemon has found it */
export async function readSuspectedLoss(db: Database, restoredBy: string | null = null): Promise<SuspectedLoss | null> {
  const { rows } = await db.query<SuspectedLoss>(
    `select coalesce(h.found, $1) as detail, coalesce(h.found_by, $2) as by,
       ${epochMsSql('coalesce(h.found_at, clock_timestamp())')} as "atMs", ${epochMsSql('h.marked_at')} as "lastMarkMs",
       ${identitySql('h')} as agreed, ${identitySql('n')} as now
     from outboxd.history h, outboxd.history_now() n where coalesce(h.found, $1) is not null`,
    [restoredBy === null ? null : ledgerRestoredMessage(restoredBy), restoredBy],
  )
  return rows[0] ?? null
}
