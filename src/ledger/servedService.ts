import { createHash } from 'node:crypto'
import type { Database } from '../postgres/database.ts'
import { ForeignError } from './problems.ts'

export interface ServiceIdentity {
  baseUrl: string
  authUrl: string
  clientId: string
}

export interface ServedService {
  baseUrl: string
  authUrl: string
  /** Salted with the ledger's id, so that the client's id is not stored. */
  clientHash: string
}

export class ForeignService extends ForeignError {
  override name = 'ForeignService'
  constructor(configured: ServedService, served: ServedService) {
    const differences = [
      configured.baseUrl === served.baseUrl ? null : `SERVICE_BASE_URL is ${configured.baseUrl}, not ${served.baseUrl}`,
      configured.authUrl === served.authUrl ? null : `SERVICE_AUTH_URL is ${configured.authUrl}, not ${served.authUrl}`,
      configured.clientHash === served.clientHash ? null : 'SERVICE_CLIENT_ID is a different client',
    ]
      .filter((difference) => difference !== null)
      .join('; ')
    super(
      'foreign_service',
      differences,
      `the ledger belongs to a different service than the configured one (${differences}). Nothing is sent. If a variable is wrong, correct it. If the same service has a new address or client id, run \`outboxd adopt --service --same\`; to change to a different service, \`outboxd adopt --service\``,
    )
  }
}

export interface LedgerBinding {
  id: string
  /** Null until a daemon of this version has started. */
  served: ServedService | null
}

export const ledgerBindingSql = `(select json_build_object('id', id, 'served', case when num_nulls(base_url, auth_url, client_hash) = 0
  then json_build_object('baseUrl', base_url, 'authUrl', auth_url, 'clientHash', client_hash) end) from outboxd.ledger)`

/** Differs for every ledger, even for a copy in a different database. */
export async function readLedgerName(db: Database): Promise<string> {
  const { rows } = await db.query<{ name: string }>(
    `select id::text || ' in ' || current_database() as name from outboxd.ledger`,
  )
  return rows[0]?.name ?? missing()
}

export async function readLedgerId(db: Database): Promise<string> {
  return (await readLedgerBinding(db)).id
}

/** Binds the ledger to this service, if it is bound to none yet. Of two daemons one wins. */
export async function bindLedgerToService(db: Database, service: ServiceIdentity, who: string): Promise<void> {
  const { baseUrl, authUrl, clientHash } = toServedService(await readLedgerId(db), service)
  await db.query(
    `update outboxd.ledger set base_url = $1, auth_url = $2, client_hash = $3, service_since = clock_timestamp(), service_by = $4
     where base_url is null`,
    [baseUrl, authUrl, clientHash, who],
  )
}

export async function assertServiceIsServed(db: Database, service: ServiceIdentity): Promise<void> {
  assertLedgerServes(await readLedgerBinding(db), service)
}

export function assertLedgerServes(ledger: LedgerBinding | null, service: ServiceIdentity): void {
  const { id, served } = ledger ?? missing()
  const configured = toServedService(id, service)
  if (served !== null && !isSameService(served, configured)) throw new ForeignService(configured, served)
}

export const isSameService = (a: ServedService, b: ServedService): boolean =>
  a.baseUrl === b.baseUrl && a.authUrl === b.authUrl && a.clientHash === b.clientHash

export async function rebindLedgerToService(
  db: Database,
  { baseUrl, authUrl, clientHash }: ServedService,
  who: string,
) {
  await db.query(
    `update outboxd.ledger set base_url = $1, auth_url = $2, client_hash = $3, service_since = clock_timestamp(), service_by = $4`,
    [baseUrl, authUrl, clientHash, who],
  )
  await db.query(`delete from outboxd.problem where kind = 'foreign_service'`)
}

export async function readLedgerBinding(db: Database): Promise<LedgerBinding> {
  const { rows } = await db.query<{ ledger: LedgerBinding | null }>(`select ${ledgerBindingSql} as ledger`)
  return rows[0]?.ledger ?? missing()
}

function missing(): never {
  throw new Error('the row of outboxd.ledger is gone. The ledger was restored in part: restore it again')
}

export const toServedService = (id: string, { baseUrl, authUrl, clientId }: ServiceIdentity): ServedService => ({
  baseUrl: normalized(baseUrl),
  authUrl: normalized(authUrl),
  clientHash: createHash('sha256').update(`${id} ${clientId}`).digest('hex'),
})

/** Removes differences in case, default port and trailing slash. */
const normalized = (address: string): string => new URL(address).href.replace(/\/+$/, '')
