import { createHash } from 'node:crypto'
import { quoteIdentifier } from '../postgres/database.ts'
import { column, columnOf, isoSql, type TableShape } from './columns.ts'
import type { OutboxTable } from './outboxTable.ts'

/**
 * What tells a row from another that has, or had, the same id: when it was recorded; if the table does not say that, two
 * hashes, of its type and key, and of what the record is made of, without the columns that we write: only the second changes when
 * the ERP edits a row. A date is too coarse: the id of a row of this morning may be used again today. Where nobody but
 * the description says that ids are unique, it is the time and the contents.
 *
 * Words with one space between: the kind, what it is, and for two of the kinds its contents. The first word names, too, what in the
 * description, and of which types, the others were made of: if that has changed they say nothing against a row. Without these names
 * it is of before; a `row` is, too: one hash of all.
 *
 * `hashtextextended` is as stable as hash partitions, which it assigns rows to.
 */
export function stampSql(table: OutboxTable, shape: TableShape, { type, key }: { type: string; key: string }): string {
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

/** Stands for what a word of a stamp is made of. */
const nameOf = (...made: string[]) => createHash('sha256').update(JSON.stringify(made)).digest('hex').slice(0, 8)

/** As the column has it, whatever zone the description says. */
function recordedExpression({ createdAt }: OutboxTable, shape: TableShape): string | null {
  if (createdAt === null) return null
  const at = column(createdAt.column)
  const { baseType } = columnOf(shape, createdAt.column)
  if (baseType === 'date') return null
  if (baseType === 'timestamp with time zone') return isoSql(`${at} at time zone 'UTC'`)
  return baseType === 'timestamp without time zone' ? isoSql(at) : `${at}::text`
}

/** What the record is made of, and its columns with their types, by which the same value is written in another way. */
function content(table: OutboxTable, shape: TableShape): { expression: string; columns: string[] } {
  const { payload, state, write } = table
  const typed = (name: string) => `${name} ${columnOf(shape, name).exactType}`
  if (payload.kind === 'column') return { expression: column(payload.column), columns: [typed(payload.column)] }
  const ours = new Set([...write.map((each) => each.column), ...(state === null ? [] : [state.column])])
  const theirs = [...(payload.columns?.values() ?? shape.columns.keys())].filter((name) => !ours.has(name))
  const named = theirs.map((name, i) => `${column(name)} as ${quoteIdentifier(`c${i}`)}`)
  const expression = `(select row_to_json(built) from (select ${named.join(', ') || 'null'}) built)`
  return { expression, columns: theirs.map(typed) }
}
