import pg from 'pg'
import type { OrderCreatedEvent } from '../endpoints/endpoints.ts'
import type { Admission, Exchange } from '../exchange.ts'
import type { ScriptStep } from '../scenario/scenarioSchema.ts'
import type { OrderEventQueue } from './orderEvents.ts'
import {
  replaceNulCharacters,
  takeConnection,
  timestampOfMicrosecondsSql,
  wrapAsDatabaseAway,
} from './sandboxDatabase.ts'

/** Secrets in `body` are masked. */
type RequestLogRow = Pick<Exchange, 'endpoint' | 'method' | 'path' | 'address' | 'idempotencyKey' | 'body'> &
  Pick<Admission, 'arrivedUs' | 'client' | 'counted'> & { status: number | null; faultId: number | null }

/** `items` is JSON text, and is stored unchanged. */
export type Effect = {
  id: string
  customerId: string
  sinceUs: number
  doneUs: number
  position: number
  statuses: readonly ScriptStep[] | null
} & (
  | { kind: 'transaction'; outcome: 'completed' | 'failed'; errorCode: string | null }
  | { kind: 'order'; items: string; event: OrderCreatedEvent }
)

type Stores = { pool: pg.Pool; events: OrderEventQueue }

/**
 * Commits a request with its record and its event, before the answer goes out.
 *
 * @throws DatabaseAway; pg's DatabaseError, with nothing stored, if a value is the cause
 */
export async function writeRequest({ pool, events }: Stores, row: RequestLogRow, effect: Effect | undefined) {
  const session = await takeConnection(pool)
  const hasEvent = effect?.kind === 'order'
  let isCommitting = !hasEvent
  try {
    if (hasEvent) {
      await session.query('begin')
      await events.put(session, effect.event)
    }
    await session.query(writeStatement(row, effect))
    isCommitting = true
    if (hasEvent) await session.query('commit')
    session.release()
  } catch (error) {
    session.release(true) // ends the session, so that Postgres rolls back
    throw wrapAsDatabaseAway(error, isCommitting)
  }
}

export function isValueRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(2[0-3]|54)/.test(error.code ?? '')
}

function writeStatement(row: RequestLogRow, effect: Effect | undefined) {
  const kind = effect?.kind ?? 'nothing'
  return {
    name: `sandbox-write-${kind}`,
    text: `
      with hit as (update sandbox.faults set hits = hits + 1 where id = $11) ${effectSql[kind]}
      insert into sandbox.ledger (
        arrived_at, endpoint, method, path, client, address, idempotency_key, body,
        status, dropped, counted, fault_id, transaction_id, order_id
      ) values (
        ${timestampOfMicrosecondsSql('$1::bigint')}, $2, $3, $4, $5, $6, $7, $8, $9, $9::integer is null, $10, $11, $12, $13
      )
    `,
    values: [
      ...[row.arrivedUs, row.endpoint, row.method, replaceNulCharacters(row.path), row.client, row.address],
      ...[replaceNulCharacters(row.idempotencyKey), replaceNulCharacters(row.body), row.status, row.counted],
      row.faultId,
      effect?.kind === 'transaction' ? effect.id : null,
      effect?.kind === 'order' ? effect.id : null,
      ...(effect === undefined ? [] : effectValues(effect)),
    ],
  }
}

const commonColumnsSql = 'client, id, customer_id, position, statuses, held, done_at'
const commonValuesSql = (id: string) =>
  `$5, ${id}, $14, $15, $16, $16::jsonb is not null, ${timestampOfMicrosecondsSql('$17::bigint')}`

/** Items are json, because json keeps their digits. */
const effectSql = {
  nothing: '',
  transaction: `, effect as (
    insert into sandbox.transactions (${commonColumnsSql}, accepted_at, outcome, error_code)
    values (${commonValuesSql('$12')}, ${timestampOfMicrosecondsSql('$18::bigint')}, $19, $20)
  )`,
  order: `, effect as (
    insert into sandbox.orders (${commonColumnsSql}, created_at, items, event_id)
    values (${commonValuesSql('$13')}, ${timestampOfMicrosecondsSql('$18::bigint')}, $19, $20)
  )`,
}

function effectValues(effect: Effect): unknown[] {
  const { customerId, position, statuses, doneUs, sinceUs } = effect
  const common = [customerId, position, statuses && JSON.stringify(statuses), doneUs, sinceUs]
  return effect.kind === 'order'
    ? [...common, effect.items, effect.event.id]
    : [...common, effect.outcome, effect.errorCode]
}
