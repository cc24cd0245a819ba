import type pg from 'pg'
import { describeOutboxIdentity, type ServedOutbox } from '../ledger/binding.ts'
import { type DatabasePool, withSearchPathOfRole } from '../postgres/database.ts'
import type { TableShape } from './columns.ts'
import { type OutboxTable, type TableForm, tableFormOf } from './outboxTable.ts'
import type { TableShapeAndIdentity } from './readTableShape.ts'
import { type RowExpressions, rowExpressions } from './rowExpressions.ts'
import { StablePositionReader } from './stablePosition.ts'
import { writeBackAssignments } from './writeBack.ts'

export interface OpenTable extends TableShapeAndIdentity {
  /** For statements on the table's rows. Statements on the catalog use `Outbox.pool`. */
  readonly db: DatabasePool
  readonly table: OutboxTable
  readonly served: ServedOutbox
  readonly rows: RowExpressions
  /** The table's name for messages. */
  readonly name: string
  readonly form: TableForm
  /** False for rows that the daemon never changes, because a lock needs the right to. */
  readonly locksRows: boolean
  /** Null unless the form is append-only. */
  readonly stablePosition: StablePositionReader | null
  /** True once `assertIdsAreComparable` has passed. */
  areIdsComparable: boolean
}

/** Sessions for statements on rows. They have the role's search path if the client's code or types are involved. */
export const withSearchPathIfNeeded = (pool: DatabasePool, { hasCustomCode }: TableShape): DatabasePool =>
  hasCustomCode ? withSearchPathOfRole(pool) : pool

export function openTable(
  pool: pg.Pool,
  table: OutboxTable,
  { shape, identity }: TableShapeAndIdentity,
  { served, failingIds }: { served: ServedOutbox; failingIds: readonly string[] },
): OpenTable {
  const db = withSearchPathIfNeeded(pool, shape)
  const form = tableFormOf(table)
  return {
    db,
    shape,
    identity,
    table,
    served,
    form,
    name: describeOutboxIdentity(identity),
    rows: rowExpressions(table, shape, served.start, failingIds),
    locksRows: form !== 'append-only' && writeBackAssignments(table, shape).length > 0,
    stablePosition:
      form === 'append-only' && table.sequence !== null ? new StablePositionReader(db, shape, table.sequence) : null,
    areIdsComparable: false,
  }
}
