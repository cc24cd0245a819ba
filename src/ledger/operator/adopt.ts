import { type Database, inTransaction } from '../../postgres/database.ts'
import {
  describeOutboxIdentity,
  isSameService,
  type OutboxIdentity,
  readLedgerBinding,
  type ServiceIdentity,
  type StoredServiceIdentity,
  toStoredServiceIdentity,
} from '../binding.ts'
import { lockCapture } from '../capture.ts'
import { isInstanceAliveSql } from '../instances.ts'
import { logOperatorAct, type Operator } from './operator.ts'

export interface ServiceChange {
  /** Null until a daemon has bound the ledger to a service. */
  served: StoredServiceIdentity | null
  configured: StoredServiceIdentity
  /** Running daemons, such as `abcd1234 on erp-1`. */
  daemons: string[]
}

/** Null if the configured service is the ledger's. */
export async function readServiceChange(db: Database, service: ServiceIdentity): Promise<ServiceChange | null> {
  const { id, served } = await readLedgerBinding(db)
  const configured = toStoredServiceIdentity(id, service)
  if (served !== null && isSameService(served, configured)) return null
  const { rows } = await db.query<{ name: string }>(
    `select left(i.id::text, 8) || ' on ' || i.host as name from outboxd.instance i
     where ${isInstanceAliveSql('i')} order by 1`,
  )
  return { served, configured, daemons: rows.map(({ name }) => name) }
}

export interface Adoption {
  table: OutboxIdentity
  /** Null keeps the former service. */
  service: ServiceIdentity | null
}

/**
 * Writes table and service as new names of those that the ledger serves. The table's sequence may have been altered.
 * Waits for the instance that captures.
 *
 * @returns null, or the change of the service that is refused because daemons run
 */
export function adopt(
  { ledger, actor }: Pick<Operator, 'ledger' | 'actor'>,
  { table, service }: Adoption,
): Promise<ServiceChange | null> {
  return inTransaction(ledger, async (db) => {
    await lockCapture(db)
    // Keeps daemons from starting until the COMMIT.
    await db.query('lock table outboxd.instance in share row exclusive mode')
    const change = service && (await readServiceChange(db, service))
    if (change !== null && change.daemons.length > 0) return change
    if (change !== null) {
      const { baseUrl, authUrl, clientHash } = change.configured
      await db.query(
        'update outboxd.ledger set base_url = $1, auth_url = $2, client_hash = $3, service_since = clock_timestamp(), service_by = $4',
        [baseUrl, authUrl, clientHash, actor.who],
      )
    }
    // The first daemon names the table, because it also notes where the table's rows begin.
    await db.query(
      'update outboxd.ledger set table_name = $1, id_column = $2, table_by = $3 where table_name is not null',
      [table.table, table.idColumn, actor.who],
    )
    await db.query('update outboxd.outbox_cursor set sequence_file = null')
    await logOperatorAct(db, actor, 'adopt', {
      outbox: describeOutboxIdentity(table),
      service: change && { baseUrl: change.configured.baseUrl, authUrl: change.configured.authUrl },
    })
    return null
  })
}
