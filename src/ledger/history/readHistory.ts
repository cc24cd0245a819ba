import type { Database } from '../../postgres/database.ts'
import { epochMs } from '../times.ts'
import type { HistoryIdentity, HistoryView } from './decideHistory.ts'

/** What an instance asks the ledger for: whether it has what the instance remembers. */
export interface Remembered {
  /** The last record that it claimed, and the number of the attempt. */
  claim: { id: string; outboxId: string; attempt: number } | null
  /** Up to where it has seen the log to be safe. */
  safeLsn: string | null
  /** Up to where it had seen that some seconds before: a synchronous standby has it, unless all COMMITs hung. */
  settledLsn: string | null
  /** It has seen records in it. */
  hasRecords: boolean
}

export const nothingRemembered: Remembered = { claim: null, safeLsn: null, settledLsn: null, hasRecords: false }

/** A COMMIT that a standby has not on its disk is none that a failover keeps. */
const commitsWait = `current_setting('synchronous_standby_names') <> ''
  and current_setting('synchronous_commit') in ('on', 'remote_apply')`

/**
 * Sessions see that there are synchronous standbys before COMMITs wait for them: PostgreSQL's checkpointer sees to that, later where it
 * is busy. So it is relied upon only a while after the settings were read.
 */
export const claimsWait = `(${commitsWait} and exists (select from pg_stat_replication)
  and pg_conf_load_time() < clock_timestamp() - interval '10 s')`

/** One instance in so long says that it found the history as it was agreed to; at once where claims wait for a standby and it is not said. */
const markEvery = `interval '10 s'`

const identityOf = (row: 'h' | 'n'): string =>
  `json_build_object('systemId', ${row}.system_id, 'timeline', ${row}.timeline, 'databaseOid', ${row}.database_oid, 'ledgerOid', ${row}.ledger_oid)`

/**
 * The columns of a look at the history. What was pruned and came back with its row has no attempts any more. Slots are asked for first: one
 * that was ever taken spares each claim the search for a record, which reads past all that was pruned and is not yet vacuumed.
 */
const columns = `
  ${identityOf('h')} as agreed, ${identityOf('n')} as now,
  ${epochMs('h.agreed_at')} as "agreedAtMs", h.agreed_by like 'operator%' as "isByPerson",
  n.safe_lsn::text as "safeLsn", coalesce(n.safe_lsn >= h.marked_lsn, true) as "isPastMark", n.has_target as "hasTarget",
  coalesce(h.written_by::text::numeric % 4294967296 <> h.xmin::text::numeric, true)
    or h.marked_event is not null and not exists (select from outboxd.submission_event where id = h.marked_event) as "isPutBack",
  ${epochMs('h.synchronous_until - clock_timestamp()')} as "waitsForMs", ${commitsWait} as "isSynchronous",
  h.marked_at not between clock_timestamp() - ${markEvery} and clock_timestamp()
    or coalesce(h.synchronous_until <= clock_timestamp(), true) and ${claimsWait} as "isMarkDue",
  ${epochMs('clock_timestamp() - h.found_at')} as "foundForMs", h.may_go_on as "mayGoOn",
  ($1::uuid is null
    or exists (select from outboxd.submission where id = $1 and (attempt >= $2 or emptied_at is not null))
    or exists (select from outboxd.pruned_submission where outbox_id = $3 and id = $1)
  ) as "hasLastClaim",
  coalesce(n.safe_lsn >= $4::pg_lsn, true) as "isPastSeen",
  pg_catalog.pg_last_wal_replay_lsn() is not null as "hasRecovered",
  pg_catalog.pg_last_wal_replay_lsn() >= $5::pg_lsn as "reachesSettled",
  not exists (select from outboxd.slot where lease > 0) and not exists (select from outboxd.submission) as "isUnused",
  case when $6::boolean then false else not exists (select from outboxd.pruned_submission) and not exists (select from outboxd.submission) end as "isEmpty",
  exists (select from outboxd.pause where reason = 'history') as "isPaused"`

/** @returns null where the ledger does not say which history it has: its row was deleted */
export async function readHistory(
  db: Database,
  { claim, safeLsn, settledLsn, hasRecords }: Remembered,
): Promise<HistoryView | null> {
  const { rows } = await db.query<HistoryView>(`select ${columns} from outboxd.history h, outboxd.history_now() n`, [
    claim?.id ?? null,
    claim?.attempt ?? null,
    claim?.outboxId ?? null,
    safeLsn,
    settledLsn,
    hasRecords,
  ])
  return rows[0] ?? null
}

/** Whether a COMMIT of ours waits for a synchronous standby now. */
export async function readCommitsWait(db: Database): Promise<boolean> {
  const { rows } = await db.query<{ wait: boolean }>(`select ${commitsWait} as wait`)
  return rows[0]?.wait ?? false
}

/** Whether it is known that the history is another: until a person has looked, nobody writes over what rows say. */
export const isHistoryFound = 'exists (select from outboxd.history where id and found_at is not null)'

/** What was found of the history, for a person. Times in epoch milliseconds. */
export interface FoundHistory {
  detail: string
  by: string
  /** When it was found. */
  atMs: number
  /** When a daemon had last looked at the history before, as far as the ledger knows. */
  lastMarkMs: number
  agreed: HistoryIdentity
  now: HistoryIdentity
  /** It is about to go on by itself. */
  mayGoOn: boolean
}

/**
 * @param said what a person says of it, as if it was found now where nothing has been
 * @returns null where the history is as it was agreed to, as far as anybody has found or says
 */
export async function readFound(
  db: Database,
  said: Pick<FoundHistory, 'detail' | 'by'> | null = null,
): Promise<FoundHistory | null> {
  const { rows } = await db.query<FoundHistory>(
    `select coalesce(h.found, $1) as detail, coalesce(h.found_by, $2) as by,
       ${epochMs('coalesce(h.found_at, clock_timestamp())')} as "atMs",
       ${epochMs('h.marked_at')} as "lastMarkMs", h.may_go_on as "mayGoOn",
       ${identityOf('h')} as agreed, ${identityOf('n')} as now
     from outboxd.history h, outboxd.history_now() n where coalesce(h.found, $1) is not null`,
    [said?.detail, said?.by],
  )
  return rows[0] ?? null
}
