import { beginTransaction } from '../postgres/database.ts'
import { isStatementCanceled } from '../postgres/sqlState.ts'
import type { OpenTable } from './openTable.ts'
import type { Outbox } from './outbox.ts'
import { type TypeCount, typeCountsSql } from './rowExpressions.ts'

export interface OutboxBacklog {
  waiting: number
  /** When the oldest waiting row was created, in epoch milliseconds. */
  oldestMs: number | null
}

export function backlogStatements({ rows: { from, uncaptured, type, createdAt, order } }: OpenTable) {
  return {
    backlog: `select count(*)::float8 as waiting,
        (select ${createdAt} from ${from} where ${uncaptured} order by ${order} limit 1) as oldest
      from ${from} where ${uncaptured}`,
    types: typeCountsSql(from, type, uncaptured),
  }
}

export function readBacklog(outbox: Outbox): Promise<OutboxBacklog> {
  return outbox.queryTable(async (table) => {
    const { rows } = await table.db.query<{ waiting: number; oldest: string | null }>(backlogStatements(table).backlog)
    return { waiting: rows[0]?.waiting ?? 0, oldestMs: toMs(rows[0]?.oldest) }
  })
}

function toMs(iso: string | null | undefined): number | null {
  const ms = Date.parse(iso ?? '')
  return Number.isNaN(ms) ? null : ms
}

/** The most rows that are counted by type. Counting them takes about ten milliseconds. */
const typedMax = 10_000

export function countSomeWaitingRowsByType(outbox: Outbox): Promise<TypeCount[]> {
  return outbox.queryTable(async (table) => {
    return (await table.db.query<TypeCount>(backlogStatements(table).types, [typedMax])).rows
  })
}

/** The rows that wait before the first capture. */
export interface InitialBacklog {
  rows: number
  /** True if `rows` is the planner's estimate, because counting takes too long. */
  isEstimate: boolean
  /** ISO 8601; null if unknown. */
  oldest: string | null
  newest: string | null
}

const countMs = 1_500

/** Counts the waiting rows, or estimates them after `countMs`; null after the first capture. */
export async function readInitialBacklog(outbox: Outbox): Promise<InitialBacklog | null> {
  const { rows: captured } = await outbox.ledger.query<{ any: boolean }>(
    'select exists (select from outboxd.submission) as any',
  )
  if (captured[0]?.any) return null
  const { db, rows } = await outbox.open()
  const { from, waits, createdAt } = rows
  try {
    await using transaction = await beginTransaction(db)
    await transaction.db.query(`set local statement_timeout = ${countMs}`)
    const { rows: counts } = await transaction.db.query<Omit<InitialBacklog, 'isEstimate'>>(
      `select count(*)::float8 as rows, min(${createdAt}) as oldest, max(${createdAt}) as newest from ${from} where ${waits}`,
    )
    return { ...(counts[0] as (typeof counts)[0]), isEstimate: false }
  } catch (error) {
    if (!isStatementCanceled(error)) throw error
    const { rows: plans } = await db.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
      `explain (format json) select from ${from} where ${waits}`,
    )
    return { rows: plans[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0, isEstimate: true, oldest: null, newest: null }
  }
}
