import type pg from 'pg'
import { textMax } from '../boundText.ts'
import { endStates, type State, states } from '../model.ts'
import { beginTransaction, type Database } from '../postgres/database.ts'
import { errorCodeOf } from '../postgres/sqlState.ts'
import { columnOf, isJsonColumn, literalSql, nowForColumnSql, type TableShape } from './columns.ts'
import { sessionsForRowStatements } from './openTable.ts'
import type { OutboxTable, WrittenColumn } from './outboxTable.ts'
import { readTableShape } from './readTableShape.ts'
import { stateExpressions } from './stateForms.ts'

/**
 * Finds columns that cannot take the values that the daemon writes, before any row exists. Returns clauses that follow
 * the table's name.
 */
export async function findWriteBackProblems(pool: pg.Pool, table: OutboxTable, shape: TableShape): Promise<string[]> {
  const nulls = findNullProblems(table, shape)
  await using transaction = await beginTransaction(sessionsForRowStatements(pool, shape)) // never committed
  const refused: Refusal[] = []
  for (const trial of trialsOf(table, shape)) {
    const why = await tryWrite(transaction.db, trial)
    if (why !== null) refused.push({ ...trial, why })
  }
  const columns = Object.values(Object.groupBy(refused, ({ column }) => column))
  return [...nulls, ...columns.flatMap((refusals) => (refusals === undefined ? [] : [explainRefusals(refusals)]))]
}

type Refusal = Trial & { why: string }

/** Only the first reason is shown, because the others are mostly the same. */
function explainRefusals(refusals: readonly Refusal[]): string {
  const [{ column, exactType, why }] = refusals as [Refusal]
  const what = [...new Set(refusals.map((refusal) => refusal.what))].join(', ')
  return `has "${column}" of type ${exactType}, which cannot take ${what}: ${why}`
}

interface Trial {
  column: string
  exactType: string
  /** The value, for people. */
  what: string
  /** The value in SQL, cast as the daemon casts it. */
  written: string
  /** SQL condition, true if the stored value `v` is complete. Null if the value may be cut. */
  whole: string | null
}

function trialsOf(table: OutboxTable, shape: TableShape): Trial[] {
  return [...stateTrials(table, shape), ...table.write.flatMap((each) => writeTrials(each, shape))]
}

function stateTrials({ state }: OutboxTable, shape: TableShape): Trial[] {
  const form = stateExpressions(state)
  if (form === null) return []
  const { column, writes } = form
  if (writes === 'time') return [timeTrial(shape, column, true)]
  return writes.map((value) => textTrial(shape, column, value, `"${value}"`, true))
}

function writeTrials({ column, what, on }: WrittenColumn, shape: TableShape): Trial[] {
  switch (what) {
    case 'now':
      return [timeTrial(shape, column, on !== null)]
    case 'state':
      return (on ?? states).map((state) => textTrial(shape, column, state, `the state "${state}"`, true))
    case 'transaction_id':
      return [textTrial(shape, column, trialTransactionId, 'the id of a transaction', false)]
    case 'error_code':
      return [textTrial(shape, column, 'E001', 'the code of an error', false)]
    case 'error':
      return [textTrial(shape, column, 'the customer is unknown', 'the words of an error', false)]
    default:
      return what satisfies never
  }
}

export const trialTransactionId = '00000000-0000-4000-8000-000000000000'

function textTrial(shape: TableShape, column: string, text: string, what: string, isWhole: boolean): Trial {
  const found = columnOf(shape, column)
  const { exactType, type } = found
  if (isJsonColumn(found))
    return { column, exactType, what, written: `to_jsonb(${literalSql(text)}::text)::${exactType}`, whole: null }
  const whole = isWhole ? `v = ${literalSql(text)}::${type}` : null
  return { column, exactType, what, written: `${literalSql(text)}::text::${exactType}`, whole }
}

function timeTrial(shape: TableShape, column: string, isKept: boolean): Trial {
  const { exactType } = columnOf(shape, column)
  const now = nowForColumnSql(shape, column)
  const written = isKept ? `coalesce(null::${exactType}, ${now})::${exactType}` : `(${now})::${exactType}`
  return { column, exactType, what: 'the time', written, whole: null }
}

/** @returns why it cannot be written; null if it can */
async function tryWrite(db: Database, { written, whole }: Trial): Promise<string | null> {
  await db.query('savepoint written')
  try {
    const { rows } = await db.query<{ whole: boolean }>(
      `select ${whole ?? 'v is not null'} as whole from (select ${written} as v) written`,
    )
    return rows[0]?.whole === false ? 'the value would be cut' : null
  } catch (error) {
    await db.query('rollback to savepoint written')
    return `SQLSTATE ${errorCodeOf(error)}: ${(error as Error).message}`
  }
}

function findNullProblems({ state, write }: OutboxTable, shape: TableShape): string[] {
  const mustBeSet = (name: string) => columnOf(shape, name).notNull
  const neverWaits =
    state !== null && mustBeSet(state.column) && stateExpressions(state)?.waiting.every((value) => value === null)
  return [
    ...(neverWaits
      ? [`says that a row waits while "${state.column}" is NULL, but that column is not null: no row would ever wait`]
      : []),
    ...write
      .filter((each) => mustBeSet(each.column) && mayBeEmptied(each))
      .map(
        ({ column }) =>
          `has "${column}" not null, but outboxd writes NULL to it if it has no value. Drop the not null, or name another column`,
      ),
  ]
}

const mayBeEmptied = ({ what, on }: WrittenColumn): boolean =>
  on === null ? !isAlwaysThere(what) : !isAlwaysThere(what) || endStates.some((state: State) => !on.includes(state))

const isAlwaysThere = (what: WrittenColumn['what']) => what === 'state' || what === 'now'

export function findWriteBackRemarks({ write }: OutboxTable, shape: TableShape): string[] {
  return write
    .filter(({ column, what }) => what === 'transaction_id' && columnOf(shape, column).baseType === 'uuid')
    .map(
      ({ column }) =>
        `"${column}" is a uuid, but the interface allows any string as a transaction id. An id that is not a uuid could not be written`,
    )
}

/**
 * Returns a sentence for each column that would cut the longest id. Asks Postgres, because a domain may have a length.
 */
export async function findShortIdColumns(pool: pg.Pool, table: OutboxTable): Promise<string[]> {
  const shape = await readTableShape(pool, table)
  const columns = table.write.flatMap(({ column, what }) => {
    const { exactType, baseType } = columnOf(shape, column)
    return what === 'transaction_id' && !/^(?:uuid|jsonb?)$/.test(baseType) ? [{ column, exactType }] : []
  })
  const found = columns.map(async ({ column, exactType }) => {
    const length = await keptLength(sessionsForRowStatements(pool, shape), exactType)
    return length === null || length >= textMax.id
      ? []
      : [
          `"${column}" is ${exactType}, which cuts ids longer than ${length} characters. The row would then name a different transaction. Make the column text, or varchar(${textMax.id})`,
        ]
  })
  return (await Promise.all(found)).flat()
}

async function keptLength(pool: Database, exactType: string): Promise<number | null> {
  try {
    const sql = `select length($1::text::${exactType}::text)::int as length`
    const { rows } = await pool.query<{ length: number }>(sql, ['x'.repeat(textMax.id)])
    return rows[0]?.length ?? null
  } catch (error) {
    if (/^2[23]/.test(String(errorCodeOf(error)))) return null
    throw error
  }
}
