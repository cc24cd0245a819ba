import { queryOne } from '../postgres/database.ts'
import type { Outbox } from './outbox.ts'

export interface OutboxBacklog {
  waiting: number
  /** When the oldest waiting row was created, in epoch milliseconds. */
  oldestMs: number | null
}

export function readBacklog(outbox: Outbox): Promise<OutboxBacklog> {
  return outbox.queryTable(async ({ db, rows: { from, uncaptured, createdAt, order } }) => {
    const { waiting, oldest } = await queryOne<{ waiting: number; oldest: string | null }>(
      db,
      `select count(*)::float8 as waiting,
         (select ${createdAt} from ${from} where ${uncaptured} order by ${order} limit 1) as oldest
       from ${from} where ${uncaptured}`,
    )
    return { waiting, oldestMs: toMs(oldest) }
  })
}

function toMs(iso: string | null): number | null {
  const ms = Date.parse(iso ?? '')
  return Number.isNaN(ms) ? null : ms
}

export interface TypeCount {
  type: string
  waiting: number
}

/** The most rows that are counted by type. Counting them takes about ten milliseconds. */
const typedMax = 10_000

export function countSomeWaitingRowsByType(outbox: Outbox): Promise<TypeCount[]> {
  return outbox.queryTable(async ({ db, rows: { from, uncaptured, type } }) => {
    const { rows } = await db.query<TypeCount>(
      `select type, count(*)::int as waiting
       from (select ${type} as type from ${from} where ${uncaptured} limit $1) waiting group by type order by type`,
      [typedMax],
    )
    return rows
  })
}
