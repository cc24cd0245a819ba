import { createHash } from 'node:crypto'
import type { Database } from '../postgres/database.ts'

export interface OutboxIdentity {
  /** With its schema, such as `public.outbox`. */
  table: string
  idColumn: string
}

/** Rows before this position are never sent. */
export interface StartPosition {
  id: string | null
  /** The ISO 8601 time at which the first row was recorded. */
  at: string | null
}

/** The outbox that the ledger serves. Row ids are unique only within one outbox. */
export interface ServedOutbox {
  /** Null until a daemon has opened the table. */
  identity: OutboxIdentity | null
  start: StartPosition
  /** `start` of `outbox.yaml` at the first start; null if there was none. */
  startGiven: string | null
  /** Rows that were recorded before have no record: the ledger was created later, or retention deleted the record. */
  sinceMs: number
  /** When a person last ran `recover`, since which a position may have gone back; null if nobody did. */
  recoveredMs: number | null
}

/** Thrown if the ledger belongs to a different outbox or service. A daemon does not start then, and its log says why. */
export class BindingMismatch extends Error {
  override name = 'BindingMismatch'
}

/** Thrown if the configuration names a different outbox, or one whose ids started again. */
export class OutboxMismatch extends BindingMismatch {
  override name = 'OutboxMismatch'
  constructor(why: string, advice: string) {
    super(`${why}. With this configuration nothing is captured or written back. ${advice}`)
  }
}

export const newLedgerAdvice =
  'A table with different rows needs a ledger of its own: let the records of this one end, then name another LEDGER_SCHEMA (docs/run/operations.md)'

export async function readServedOutbox<ExtraColumns>(
  db: Database,
  ...extraColumnsSql: readonly string[]
): Promise<ServedOutbox & ExtraColumns> {
  const { rows } = await db.query<ServedOutbox & ExtraColumns>(
    `select ${[columns, ...extraColumnsSql].join(', ')} from outboxd.ledger`,
  )
  return rows[0] ?? missing()
}

const columns = `
  case when table_name is not null then json_build_object('table', table_name, 'idColumn', id_column) end as identity,
  json_build_object('id', start_id, 'at', to_char(start_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) as start,
  start_given as "startGiven",
  extract(epoch from greatest(since, (select pruned_recorded + interval '1 ms' from outboxd.outbox_cursor)))::float8 * 1000 as "sinceMs",
  extract(epoch from recovered_at)::float8 * 1000 as "recoveredMs"`

/**
 * Notes the table and where its rows begin. Does nothing if the ledger already serves an outbox, so that of two daemons
 * one wins.
 */
export async function bindLedgerToOutboxIfUnbound(
  db: Database,
  { table, idColumn }: OutboxIdentity,
  { given, id, at }: StartPosition & { given: string | null },
  who: string,
): Promise<void> {
  await db.query(
    `update outboxd.ledger
     set table_name = $1, id_column = $2, table_by = $3, start_given = $4, start_id = $5, start_at = $6::timestamptz
     where table_name is null`,
    [table, idColumn, who, given, id, at],
  )
}

export const describeOutboxIdentity = ({ table, idColumn }: OutboxIdentity): string =>
  `${table} with ids in the column ${idColumn}`

export const isSameOutbox = (a: OutboxIdentity, b: OutboxIdentity): boolean =>
  a.table === b.table && a.idColumn === b.idColumn

/** @throws OutboxMismatch if the ledger serves a different table */
export function assertOutboxIsServed({ identity: served }: ServedOutbox, identity: OutboxIdentity): void {
  if (served === null || isSameOutbox(served, identity)) return
  const named = describeOutboxIdentity(identity)
  throw new OutboxMismatch(
    `the ledger belongs to the outbox ${describeOutboxIdentity(served)}, and the configuration names ${named}`,
    `If OUTBOX_TABLE or outbox.yaml is wrong, correct it. If the table was renamed, run \`outboxd adopt --same\`. ${newLedgerAdvice}`,
  )
}

export interface ServiceIdentity {
  baseUrl: string
  authUrl: string
  clientId: string
}

export interface StoredServiceIdentity {
  baseUrl: string
  authUrl: string
  /** A hash of client id and ledger id, so that the client id is not stored. */
  clientHash: string
}

export class ServiceMismatch extends BindingMismatch {
  override name = 'ServiceMismatch'
  constructor(configured: StoredServiceIdentity, served: StoredServiceIdentity) {
    const differences = [
      ...(configured.baseUrl === served.baseUrl
        ? []
        : [`SERVICE_BASE_URL is ${configured.baseUrl}, not ${served.baseUrl}`]),
      ...(configured.authUrl === served.authUrl
        ? []
        : [`SERVICE_AUTH_URL is ${configured.authUrl}, not ${served.authUrl}`]),
      ...(configured.clientHash === served.clientHash ? [] : ['SERVICE_CLIENT_ID is a different client']),
    ].join('; ')
    super(
      `the ledger belongs to a different service than the configured one (${differences}). With this configuration nothing is sent. If a variable is wrong, correct it. If the same service has a new address or client id, stop all daemons and run \`outboxd adopt --same\`. A different service needs a ledger of its own: name it in LEDGER_SCHEMA`,
    )
  }
}

export interface LedgerBinding {
  id: string
  /** Null until a daemon has bound the ledger to a service. */
  served: StoredServiceIdentity | null
}

export const ledgerBindingSql = `(select json_build_object('id', id, 'served', case when num_nulls(base_url, auth_url, client_hash) = 0
  then json_build_object('baseUrl', base_url, 'authUrl', auth_url, 'clientHash', client_hash) end) from outboxd.ledger)`

/** Does nothing if the ledger is already bound, so that of two daemons one wins. */
export async function bindLedgerToServiceIfUnbound(db: Database, service: ServiceIdentity, who: string): Promise<void> {
  const { id, served } = await readLedgerBinding(db)
  if (served !== null) return
  const { baseUrl, authUrl, clientHash } = toStoredServiceIdentity(id, service)
  await db.query(
    `update outboxd.ledger set base_url = $1, auth_url = $2, client_hash = $3, service_since = clock_timestamp(), service_by = $4
     where base_url is null`,
    [baseUrl, authUrl, clientHash, who],
  )
}

export async function assertLedgerBelongsToService(db: Database, service: ServiceIdentity): Promise<void> {
  assertBindingMatchesService(await readLedgerBinding(db), service)
}

export function assertBindingMatchesService(binding: LedgerBinding | null, service: ServiceIdentity): void {
  const { id, served } = binding ?? missing()
  const configured = toStoredServiceIdentity(id, service)
  if (served !== null && !isSameService(served, configured)) throw new ServiceMismatch(configured, served)
}

export const isSameService = (a: StoredServiceIdentity, b: StoredServiceIdentity): boolean =>
  a.baseUrl === b.baseUrl && a.authUrl === b.authUrl && a.clientHash === b.clientHash

export async function readLedgerBinding(db: Database): Promise<LedgerBinding> {
  const { rows } = await db.query<{ ledger: LedgerBinding | null }>(`select ${ledgerBindingSql} as ledger`)
  return rows[0]?.ledger ?? missing()
}

function missing(): never {
  throw new Error('the row of outboxd.ledger is gone. The ledger was restored in part: restore it again')
}

export const toStoredServiceIdentity = (
  ledgerId: string,
  { baseUrl, authUrl, clientId }: ServiceIdentity,
): StoredServiceIdentity => ({
  baseUrl: normalized(baseUrl),
  authUrl: normalized(authUrl),
  clientHash: createHash('sha256').update(`${ledgerId} ${clientId}`).digest('hex'),
})

/** Removes differences in case, default port and trailing slash. */
const normalized = (address: string): string => new URL(address).href.replace(/\/+$/, '')
