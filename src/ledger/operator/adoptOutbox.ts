import { type Database, inTransaction } from '../../postgres/database.ts'
import {
  describeOutboxIdentity,
  isSameService,
  type OutboxIdentity,
  readLedgerBinding,
  readServedOutbox,
  rebindLedgerToService,
  type ServiceIdentity,
  type StartPosition,
  type StoredServiceIdentity,
  toStoredServiceIdentity,
} from '../binding.ts'
import { isInstanceAliveSql } from '../instances.ts'
import { type Actor, logOperatorAct, type Operator } from './operator.ts'

export interface Adoption {
  identity: OutboxIdentity
  /** `new`: rows whose ids the ledger knows may be different rows. Null if the operator says nothing about rows. */
  rows: 'same' | 'new' | null
  /** Null keeps the former start for the same rows, and means no start for new rows. */
  start: StartPosition | null
}

export interface WorkUnderWay {
  submissions: number
  /** Outcomes that wait to be written back. Adopting new rows drops them. */
  reports: number
  /** Records that would be sent again if their rows count as new and still wait. */
  sent: number
}

export async function countWorkUnderWay(db: Database): Promise<WorkUnderWay> {
  const { rows } = await db.query<WorkUnderWay>(
    `select (select count(*)::int from outboxd.submission
        where state in ('queued', 'sending', 'accepted') and outbox = outboxd.current_outbox()) as submissions,
       (select count(*)::int from outboxd.submission
        where report_due and outbox = outboxd.current_outbox()) as reports,
       (select count(*)::int from outboxd.submission
        where attempt > 0 and outbox = outboxd.current_outbox())
       + (select count(*)::int from outboxd.pruned_submission
          where state = 'completed' and outbox = outboxd.current_outbox()) as sent`,
  )
  return rows[0] as WorkUnderWay
}

/** Waits for the instance that captures, so that all instances know the new outbox before they take a row. */
export function adoptOutbox({ ledger, actor }: Pick<Operator, 'ledger' | 'actor'>, adoption: Adoption): Promise<void> {
  return inTransaction(ledger, (db) => writeAdoption(db, adoption, actor))
}

async function writeAdoption(db: Database, { identity, rows, start }: Adoption, actor: Actor): Promise<void> {
  await db.query("select pg_advisory_xact_lock(7161, 'outboxd.submission'::regclass::oid::int)")
  const former = (await readServedOutbox(db)).start
  if (rows === 'same') await declareRowsSame(db)
  if (rows === 'new') {
    await db.query(
      'update outboxd.submission set report_due = false where report_due and outbox = outboxd.current_outbox()',
    )
    await db.query('update outboxd.outbox set is_current = false where is_current')
    await db.query('insert into outboxd.outbox default values')
  }
  const { id, at } = start ?? (rows === 'new' ? { id: null, at: null } : former)
  await db.query(
    `update outboxd.outbox set database_name = $1, table_name = $2, id_column = $3, start_id = $4, start_at = $5,
       said_by = $6, compared_at = null where is_current`,
    [identity.database, identity.table, identity.idColumn, id, at, actor.who],
  )
  await db.query('delete from outboxd.skipped_row where outbox <> outboxd.current_outbox()')
  await db.query('delete from outboxd.edited_row')
  // Deletes problems of the former outbox's rows. Problems that still exist are found again.
  await db.query(
    `delete from outboxd.problem where kind = 'foreign_outbox' or kind = 'row_conflict' and subject = '' or ($1 and kind in ('row_conflict', 'ledger_behind', 'rows_passed_over',
    'row_skipped', 'row_locked', 'report_refused', 'report_locked', 'mark_ineffective', 'row_missing'))`,
    [rows === 'new'],
  )
  await logOperatorAct(db, actor, 'adopt', {
    outbox: describeOutboxIdentity(identity),
    rows: rows ?? 'same',
    start: { id, at },
  })
}

/**
 * Rows up to the cursor are no longer compared with their stamps. If rows differ already, the operator thereby says
 * that the ERP edits rows.
 */
async function declareRowsSame(db: Database): Promise<void> {
  await db.query(
    'update outboxd.outbox_cursor set same_upto = position, sequence_file = null where epoch = outboxd.current_outbox()',
  )
  await db.query(
    `update outboxd.outbox set rows_edited = true where is_current
       and exists (select from outboxd.problem where kind = 'row_conflict')`,
  )
}

export interface ServiceChangeImpact {
  served: StoredServiceIdentity | null
  configured: StoredServiceIdentity
  /** Running daemons, such as `abcd1234 on erp-1`. */
  daemons: string[]
  /** Records that the service may have, by state. */
  records: Record<string, number>
}

export async function readServiceChangeImpact(db: Database, service: ServiceIdentity): Promise<ServiceChangeImpact> {
  const { id, served } = await readLedgerBinding(db)
  const { rows: daemons } = await db.query<{ name: string }>(
    `select left(i.id::text, 8) || ' on ' || i.host as name from outboxd.instance i
     join outboxd.instance_setting s on s.instance_id = i.id where ${isInstanceAliveSql('i')} order by 1`,
  )
  const { rows: counts } = await db.query<{ state: string; records: number }>(
    `select state, count(*)::int as records from outboxd.submission
     where state in ('sending', 'accepted', 'uncertain') or state = 'queued' and attempt > 0 group by state order by state`,
  )
  return {
    served,
    configured: toStoredServiceIdentity(id, service),
    daemons: daemons.map(({ name }) => name),
    records: Object.fromEntries(counts.map(({ state, records }) => [state, records])),
  }
}

export interface ServiceAdoption {
  /**
   * Any kind but `adopted` is a refusal. `served`: the ledger has this service already. `daemons`: daemons are running.
   * `records`: the new service does not know records that are under way.
   */
  kind: 'adopted' | 'served' | 'daemons' | 'records'
  impact: ServiceChangeImpact
}

export function adoptService(
  { ledger, actor }: Operator,
  { service, isSame }: { service: ServiceIdentity; isSame: boolean },
): Promise<ServiceAdoption> {
  return inTransaction(ledger, async (db) => {
    // Keeps daemons from starting until the COMMIT.
    await db.query('lock table outboxd.instance in share row exclusive mode')
    const impact = await readServiceChangeImpact(db, service)
    const kind = judgeServiceChange(impact, isSame)
    if (kind !== 'adopted') return { kind, impact }
    await rebindLedgerToService(db, impact.configured, actor.who)
    const { baseUrl, authUrl } = impact.configured
    const former = impact.served?.baseUrl ?? null
    await logOperatorAct(db, actor, 'adopt', { service: { baseUrl, authUrl }, same: isSame, former })
    return { kind, impact }
  })
}

export function judgeServiceChange(
  { served, configured, daemons, records }: ServiceChangeImpact,
  isSame: boolean,
): ServiceAdoption['kind'] {
  if (served !== null && isSameService(served, configured)) return 'served'
  if (daemons.length > 0) return 'daemons'
  return isSame || served === null || Object.keys(records).length === 0 ? 'adopted' : 'records'
}

/**
 * Drops the reports to former outboxes, which no daemon writes. Otherwise a record that ends after `adopt` could never be
 * pruned or erased.
 */
export async function dropReportsToFormerOutboxes(db: Database): Promise<void> {
  // The conditions of both partial indexes. Without a former outbox, nothing is read.
  for (const isIndexed of ['report_put_off is distinct from revision', 'report_put_off = revision'])
    await db.query(
      `update outboxd.submission set report_due = false
       where report_due and ${isIndexed} and outbox <> outboxd.current_outbox()
         and exists (select from outboxd.outbox where not is_current)`,
    )
}
