import type pg from 'pg'
import { describeOutboxIdentity, type OutboxIdentity, type ServedOutbox } from '../ledger/binding.ts'
import { type Database, type DatabasePool, withSearchPathOfRole } from '../postgres/database.ts'
import { findEncodingRefusalClause, readServerEncoding } from '../postgres/serverEncoding.ts'
import type { TableShape } from './columns.ts'
import { CursorScan } from './cursorScan.ts'
import { LedgerMemory } from './ledgerMemory.ts'
import { isMarkedOnCapture, type OutboxTable } from './outboxTable.ts'
import { OutboxTableUnusable, readOutboxIdentity, readTableShape } from './readTableShape.ts'
import { computeCursorQueryDigest, type RowExpressions, rowExpressions } from './rowExpressions.ts'
import { createStablePositionReader } from './stablePosition.ts'

export interface TableShapeAndIdentity {
  readonly shape: TableShape
  readonly identity: OutboxIdentity
}

export async function readTableShapeAndIdentity(pool: pg.Pool, table: OutboxTable): Promise<TableShapeAndIdentity> {
  const refusal = findEncodingRefusalClause(await readServerEncoding(pool))
  if (refusal !== null) throw new OutboxTableUnusable(`the database of DATABASE_URL cannot be used: ${refusal}`)
  const shape = await readTableShape(pool, table)
  const identity = await readOutboxIdentity(pool, shape.qualified, table.id)
  return { shape, identity }
}

/** Keys whose rows wait, if the last claim passed its most rows and found no row to take. The next claim passes them. */
interface PassedKeys {
  types: string
  keyHashes: ReadonlySet<string>
}

export interface OpenTable extends TableShapeAndIdentity {
  /** For statements on the table's rows. Statements on the catalog use `Outbox.pool`. */
  readonly db: DatabasePool
  readonly table: OutboxTable
  readonly served: ServedOutbox
  readonly rows: RowExpressions
  /** The expressions without exceptions for rows whose filter fails. */
  readonly rowsIncludingFailing: RowExpressions
  readonly memory: LedgerMemory
  /** Null if rows are marked on capture. */
  readonly scan: CursorScan | null
  passedKeys: PassedKeys | null
}

/** Sessions for statements on rows. They have the role's search path if the client's code or types are involved. */
export const withSearchPathIfNeeded = (pool: DatabasePool, { hasCustomCode }: TableShape): DatabasePool =>
  hasCustomCode ? withSearchPathOfRole(pool) : pool

export function openTable(
  pool: pg.Pool,
  table: OutboxTable,
  { shape, identity }: TableShapeAndIdentity,
  { served, failingIds }: { served: ServedOutbox; failingIds: readonly string[] },
  ledger: Database,
): OpenTable {
  const rows = rowExpressions(table, shape, served.start, failingIds)
  const rowsIncludingFailing = rowExpressions(table, shape, served.start)
  const memory = new LedgerMemory(ledger, computeCursorQueryDigest(rowsIncludingFailing, served.readings))
  const db = withSearchPathIfNeeded(pool, shape)
  const scan = isMarkedOnCapture(table)
    ? null
    : new CursorScan({
        ...{ db, rows, memory },
        stablePosition: createStablePositionReader(db, table, shape),
        name: describeOutboxIdentity(identity),
        byTransaction: table.sequence === null,
      })
  return { db, shape, identity, table, served, rows, rowsIncludingFailing, memory, scan, passedKeys: null }
}
