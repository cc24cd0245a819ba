import { quoteIdentifier } from '../postgres/database.ts'
import { column, columnOf, iso } from './columns.ts'
import type { TableShape } from './inspectTable.ts'
import type { OutboxTable } from './outboxTable.ts'

/**
 * What tells a row from another that has, or had, the same id: when it was recorded; where the table does not say that, two
 * hashes, of its type and key, and of what the record is made of, without the columns that we write: the second alone changes where
 * the ERP edits a row. A date is too coarse: the id of a row of this morning may be used again today. Where nobody but
 * the description says that ids are unique, it is the time and the contents.
 *
 * Words with one space between: the kind, what it is, and for two of the kinds its contents. A `row` is of before: one hash of all.
 *
 * `hashtextextended` is as stable as hash partitions, which it assigns rows to.
 */
export function stampExpression(
  table: OutboxTable,
  shape: TableShape,
  { type, key }: { type: string; key: string },
): string {
  const hash = (...expressions: string[]) =>
    `to_hex(hashtextextended((row_to_json(row(${expressions}))::text) collate "C", 0))`
  const recorded = recordedExpression(table, shape)
  const contents = content(table, shape)
  if (recorded !== null && table.idPromised)
    return `'both ' || coalesce(${recorded}, '') || ' ' || ${hash(type, key, contents)}`
  const hashes = `'content ' || ${hash(type, key)} || ' ' || ${hash(contents)}`
  return recorded === null ? hashes : `coalesce('at ' || ${recorded}, ${hashes})`
}

/** As the column has it, whatever zone the description says. */
function recordedExpression({ createdAt }: OutboxTable, shape: TableShape): string | null {
  if (createdAt === null) return null
  const at = column(createdAt.column)
  const { baseType } = columnOf(shape, createdAt.column)
  if (baseType === 'date') return null
  if (baseType === 'timestamp with time zone') return iso(`${at} at time zone 'UTC'`)
  return baseType === 'timestamp without time zone' ? iso(at) : `${at}::text`
}

function content(table: OutboxTable, shape: TableShape): string {
  const { payload, state, write } = table
  if (payload.kind === 'column') return column(payload.column)
  const ours = new Set([...write.map((each) => each.column), ...(state === null ? [] : [state.column])])
  const theirs = [...(payload.columns?.values() ?? shape.columns.keys())].filter((name) => !ours.has(name))
  const named = theirs.map((name, i) => `${column(name)} as ${quoteIdentifier(`c${i}`)}`)
  return `(select row_to_json(built) from (select ${named.join(', ') || 'null'}) built)`
}
