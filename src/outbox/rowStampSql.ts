import { createHash } from 'node:crypto'
import { quoteIdentifier } from '../postgres/database.ts'
import { columnOf, columnSql, isoTimeSql, type TableShape } from './columns.ts'
import type { OutboxTable } from './outboxTable.ts'

/**
 * The stamp, which tells a row from another with the same id. Its words have one space between them:
 *
 *     at:MADE TIME                     the creation time (a date is too coarse: an id may come again on the same day)
 *     content:MADE:MADE HASH HASH      without one: a hash of type and key, and one of the contents without our columns
 *     both:MADE:MADE TIME HASH         if only the description promises that ids are unique
 *
 * An edit by the ERP changes the last hash only. MADE is a digest of the columns and types from which a word is made.
 * Words of different MADE cannot be compared. A stamp without MADE, or of the kind `row`, is from an older version.
 *
 * `hashtextextended` never changes, because hash partitions depend on it.
 */
export function rowStampSql(
  table: OutboxTable,
  shape: TableShape,
  { type, key }: { type: string; key: string },
): string {
  const hash = (...expressions: string[]) =>
    `to_hex(hashtextextended((row_to_json(row(${expressions}))::text) collate "C", 0))`
  const recorded = recordedExpression(table, shape)
  const { expression: contents, columns } = content(table, shape)
  if (recorded !== null && table.idPromised) {
    const kind = `both:${nameOf(recorded)}:${nameOf(type, key, contents, ...columns)}`
    return `'${kind} ' || coalesce(${recorded}, '') || ' ' || ${hash(type, key, contents)}`
  }
  const kind = `content:${nameOf(type, key)}:${nameOf(contents, ...columns)}`
  const hashes = `'${kind} ' || ${hash(type, key)} || ' ' || ${hash(contents)}`
  return recorded === null ? hashes : `coalesce('at:${nameOf(recorded)} ' || ${recorded}, ${hashes})`
}

const nameOf = (...made: string[]) => createHash('sha256').update(JSON.stringify(made)).digest('hex').slice(0, 8)

/** Leaves out the zone of the description, because it may be corrected later. */
function recordedExpression({ createdAt }: OutboxTable, shape: TableShape): string | null {
  if (createdAt === null) return null
  const at = columnSql(createdAt.column)
  const { baseType } = columnOf(shape, createdAt.column)
  if (baseType === 'date') return null
  if (baseType === 'timestamp with time zone') return isoTimeSql(`${at} at time zone 'UTC'`)
  return baseType === 'timestamp without time zone' ? isoTimeSql(at) : `${at}::text`
}

/** The contents of the record. Includes the types of its columns, because they decide how a value is printed. */
function content(table: OutboxTable, shape: TableShape): { expression: string; columns: string[] } {
  const { payload, state, write } = table
  const typed = (name: string) => `${name} ${columnOf(shape, name).exactType}`
  if (payload.kind === 'column') return { expression: columnSql(payload.column), columns: [typed(payload.column)] }
  const ours = new Set([...write.map((each) => each.column), ...(state === null ? [] : [state.column])])
  const theirs = [...(payload.columns?.values() ?? shape.columns.keys())].filter((name) => !ours.has(name))
  const named = theirs.map((name, i) => `${columnSql(name)} as ${quoteIdentifier(`c${i}`)}`)
  const expression = `(select row_to_json(built) from (select ${named.join(', ') || 'null'}) built)`
  return { expression, columns: theirs.map(typed) }
}
