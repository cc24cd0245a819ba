import type pg from 'pg'
import { nameOutbox, type OutboxIdentity, type ServedOutbox } from '../ledger/servedOutbox.ts'
import { states } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { readEncoding, refusedEncoding } from '../postgres/serverEncoding.ts'
import { type ClaimStatements, claimStatements, cutId } from './claimByLock.ts'
import { type CursorScan, openCursorScan } from './cursorScan.ts'
import { type CursorStore, openCursorStore } from './cursorStore.ts'
import type { readHistory } from './history.ts'
import { openHorizon } from './horizon.ts'
import { inspectTable, OutboxTableUnusable, type TableShape } from './inspectTable.ts'
import { type LockedStatements, lockedStatements } from './lockedRows.ts'
import { readIdentity } from './outboxIdentity.ts'
import { type OutboxTable, saysTaken } from './outboxTable.ts'
import { type PassedStatements, passedStatements } from './passedRows.ts'
import { type ReadStatements, readStatements } from './readRows.ts'
import type { LookStatements } from './reviewConflicts.ts'
import { type SaidStatements, saidStatements } from './saidRows.ts'
import { nameSelection } from './selection.ts'
import { type RowExpressions, rowExpressions } from './statements.ts'
import { type TakenStatements, takenStatements } from './takenRows.ts'
import { typeCounts } from './typeCounts.ts'
import type { FilterStatements } from './unfilterable.ts'
import { type UnknownStatusStatements, unknownStatusStatements } from './unknownStatuses.ts'
import { type WriteStatements, writeStatements } from './writeBack.ts'

/** What was looked up of a table. */
export interface InspectedTable {
  readonly shape: TableShape
  readonly identity: OutboxIdentity
}

/** @throws OutboxTableUnusable */
export async function inspectNamed(pool: pg.Pool, table: OutboxTable): Promise<InspectedTable> {
  const refusal = refusedEncoding(await readEncoding(pool))
  if (refusal !== null) throw new OutboxTableUnusable(`the database of DATABASE_URL cannot be used: ${refusal}`)
  const shape = await inspectTable(pool, table)
  const identity = await readIdentity(pool, shape.qualified, table.id)
  return { shape, identity }
}

/** A table with the statements that are made for it. */
export interface OpenTable {
  readonly sql: ClaimStatements &
    ReadStatements &
    LookStatements &
    LockedStatements &
    FilterStatements &
    Record<'byId' | 'waitsById' | 'waiting' | 'any' | 'lockOne' | 'backlog' | 'types', string>
  readonly history: Parameters<typeof readHistory>[1]
  readonly writing: WriteStatements | null
  /** Quoted, with its schema where it is described so. */
  readonly table: string
  /** Null where the rows themselves say whether they wait. */
  readonly cursorScan: CursorScan | null
  readonly taken: TakenStatements
  /** What rows say of their records. */
  readonly said: SaidStatements
  readonly memory: CursorStore
  /** Null if rows have no status that could be unknown. */
  readonly unknownStatus: UnknownStatusStatements | null
  readonly passed: PassedStatements
}

/** Makes the statements for a table as it is, and for what the ledger knows of it. */
export function openTable(
  pool: pg.Pool,
  table: OutboxTable,
  { shape, identity }: InspectedTable,
  { served, unfilterable }: { served: ServedOutbox; unfilterable: readonly string[] },
  ledger: Database,
): OpenTable {
  const { epoch, start } = served
  const rows = rowExpressions(table, shape, start, unfilterable)
  /** As if the filter and the stamp failed for no row. */
  const ideal = rowExpressions(table, shape, start)
  const memory = openCursorStore(ledger, epoch, nameSelection(ideal, served.readings))
  const from = `${shape.qualified} o`
  const byTransaction = table.sequence === null
  return {
    sql: {
      ...claimStatements(from, rows),
      ...readStatements(from, rows),
      ...lookStatements(from, rows),
      ...lockedStatements(from, rows, shape),
      // With the stamp as it is for every row: whether it still fails is asked.
      ...filterStatements(table, from, ideal),
    },
    history: { from, waits: rows.waits, createdAt: rows.createdAt },
    writing: writeStatements(table, shape, states, rows, served.rowsEdited),
    table: shape.qualified,
    taken: takenStatements(table, shape, rows, served),
    said: saidStatements(table, shape, ideal),
    memory,
    unknownStatus: unknownStatusStatements(table, shape, rows, start),
    passed: passedStatements(from, rows),
    cursorScan: saysTaken(table)
      ? null
      : openCursorScan({
          db: pool,
          from,
          rows,
          horizon: openHorizon(pool, table, shape),
          cursorStore: memory,
          name: nameOutbox(identity),
          byTransaction,
        }),
  }
}

function filterStatements(table: OutboxTable, from: string, { mayWait, stamp, idType, idText, sort }: RowExpressions) {
  const id = sort.at(-1)?.expression
  const filter = table.filter ?? 'true'
  const asked = saysTaken(table) ? '1' : stamp
  return {
    candidates: `select ${idText} as id from ${from} where ${mayWait} and ($1::${idType} is null or ${id} > $1::${idType})
      order by ${id} limit $2`,
    ask: `select count(case when (${filter}\n) then ${asked} end) from ${from} where ${id} = any($1::${idType}[])`,
  }
}

function lookStatements(
  from: string,
  { waits, mayWait, record, createdAt, type, stamp, idType, idText, sort }: RowExpressions,
) {
  const order = sort.map(({ expression }) => expression).join(', ')
  const id = sort.at(-1)?.expression
  const seen = `select ${idText} as "outboxId", ${stamp} as stamp, ${createdAt} as "createdAt" from ${from}`
  return {
    look: `${seen} where ${id} = any($1::${idType}[])`,
    lookByText: `${seen} where ${cutId(idText)} = any($1::text[])`,
    byId: `select ${record} from ${from} where ${id} = $2::${idType}`,
    waitsById: `select from ${from} where ${mayWait} and ${id} = $1::${idType}`,
    waiting: `select ${record} from ${from} where ${waits} order by ${order} limit $2`,
    any: `select from ${from} where ${waits} limit 1`,
    lockOne: `select ${idText} as "outboxId", ${stamp} as stamp from ${from} where ${waits} limit 1 for no key update of o skip locked`,
    types: typeCounts(from, type, waits),
    backlog: `select count(*)::float8 as waiting,
        (select ${createdAt} from ${from} where ${waits} order by ${order} limit 1) as oldest
      from ${from} where ${waits}`,
  }
}
