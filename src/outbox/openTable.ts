import type pg from 'pg'
import { nameOutbox, type OutboxIdentity, type ServedOutbox } from '../ledger/servedOutbox.ts'
import { type Database, type Sessions, withRolePath } from '../postgres/database.ts'
import { readEncoding, refusedEncoding } from '../postgres/serverEncoding.ts'
import type { TableShape } from './columns.ts'
import { CursorScan } from './cursorScan.ts'
import { createHorizon } from './horizon.ts'
import { inspectTable, OutboxTableUnusable, readIdentity } from './inspectTable.ts'
import { LedgerMemory } from './ledgerMemory.ts'
import { isMarkedOnCapture, type OutboxTable } from './outboxTable.ts'
import { type RowExpressions, rowExpressions, selectionDigest } from './rowExpressions.ts'

/** What was looked up of a table. */
export interface InspectedTable {
  readonly shape: TableShape
  readonly identity: OutboxIdentity
}

/** Looks up the table of a description. @throws OutboxTableUnusable */
export async function inspectWithIdentity(pool: pg.Pool, table: OutboxTable): Promise<InspectedTable> {
  const refusal = refusedEncoding(await readEncoding(pool))
  if (refusal !== null) throw new OutboxTableUnusable(`the database of DATABASE_URL cannot be used: ${refusal}`)
  const shape = await inspectTable(pool, table)
  const identity = await readIdentity(pool, shape.qualified, table.id)
  return { shape, identity }
}

/** A table as it is and as the ledger serves it, with the expressions of which statements on it are made. */
export interface OpenTable extends InspectedTable {
  /** For statements on its rows. Other statements use `Outbox.pool`, which looks names up in the catalog only. */
  readonly db: Sessions
  readonly table: OutboxTable
  readonly served: ServedOutbox
  readonly rows: RowExpressions
  /** The same as if the filter and the stamp failed for no row. */
  readonly ideal: RowExpressions
  /** What the ledger knows of rows. */
  readonly memory: LedgerMemory
  /** Null if the rows themselves say whether they wait. */
  readonly scan: CursorScan | null
}

/** The sessions for statements on rows: with the role's search path if code or types of the client's take part. */
export const sessionsOf = (pool: Sessions, { hasClientCode }: TableShape): Sessions =>
  hasClientCode ? withRolePath(pool) : pool

/** Puts together a table as it is and what the ledger knows of it. @param failingIds ids of rows that the filter or the stamp fails for */
export function openTable(
  pool: pg.Pool,
  table: OutboxTable,
  { shape, identity }: InspectedTable,
  { served, failingIds }: { served: ServedOutbox; failingIds: readonly string[] },
  ledger: Database,
): OpenTable {
  const rows = rowExpressions(table, shape, served.start, failingIds)
  const ideal = rowExpressions(table, shape, served.start)
  const memory = new LedgerMemory(ledger, served.epoch, selectionDigest(ideal, served.readings))
  const db = sessionsOf(pool, shape)
  const scan = isMarkedOnCapture(table)
    ? null
    : new CursorScan({
        ...{ db, rows, memory },
        horizon: createHorizon(db, table, shape),
        name: nameOutbox(identity),
        byTransaction: table.sequence === null,
      })
  return { db, shape, identity, table, served, rows, ideal, memory, scan }
}
