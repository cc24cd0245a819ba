import { quoteLiteral } from '../postgres/database.ts'
import { type CatalogColumn, type CatalogTable, describeCandidate } from './catalogTable.ts'
import { comparableSql } from './proposeCapture.ts'
import type { RelatedTables } from './relatedTables.ts'

/**
 * Proposes the query for `source`. The joins follow from keys. The user chooses the lines and what other tables add.
 *
 * @param key the columns that identify a row; empty if none do
 */
export function proposeSourceQuery(
  table: CatalogTable,
  key: readonly CatalogColumn[],
  related: RelatedTables,
  hasItems: boolean,
): string[] {
  const joins = related.refersTo.flatMap(({ to, columns, toColumns }, i) => {
    const alias = `r${i + 1}`
    return [`-- left join ${to} ${alias} on ${matchSql(alias, toColumns, 'h', columns)}`, ...columnLines(related, to)]
  })
  const selected = selectColumns(table, key)
  const names = key.map(({ sql }) => sql)
  const hasSeveral = key.length > 1
  return [
    'select',
    ...selected.map((column, i) => `  ${column}${hasItems || i < selected.length - 1 ? ',' : ''}`),
    ...(hasItems ? itemsLines(related) : []),
    hasSeveral ? `from jsonb_populate_recordset(null::${table.sql}, $1) k` : `from ${table.sql} h`,
    ...(hasSeveral ? [`join ${table.sql} h on ${matchSql('h', names, 'k', names)}`] : []),
    ...(joins.length === 0
      ? []
      : ['-- To add what these tables have, join them, and select r1.COLUMN as NAME:', ...joins]),
    ...whereLines(key),
  ].map(keepCommentOnOneLine)
}

function whereLines([id, ...others]: readonly CatalogColumn[]): string[] {
  if (id === undefined) return ['where h.FILL_IN = any($1) -- FILL IN: the column that identifies a row']
  return others.length === 0 ? [`where h.${id.sql} = any($1)`] : []
}

/** Selects all columns, and the key as `id`. */
function selectColumns({ columns }: CatalogTable, key: readonly CatalogColumn[]): string[] {
  const [id, ...more] = key
  if (id?.name === 'id' && more.length === 0) return ['h.*']
  const others = columns.filter(({ name }) => name !== 'id').map(({ sql }) => `h.${sql}`)
  const pairs = key.map((column) => `${quoteLiteral(column.name)}, ${comparableSql(`h.${column.sql}`, column)}`)
  const idSql = more.length > 0 ? `jsonb_build_object(${pairs.join(', ')})` : `h.${id?.sql ?? 'FILL_IN'}`
  return [`${idSql} as id`, others.length === columns.length ? 'h.*' : others.join(', ')]
}

function itemsLines(related: RelatedTables): string[] {
  const references = [...related.referredBy, ...related.guesses].filter(({ from }) => related.tables.has(from))
  const what =
    references.length === 0
      ? 'the list of lines. No table refers to this one'
      : 'the list of lines: a query below, with the values to send, and a condition for the lines that count'
  return [
    `  FILL_IN as items -- FILL IN: ${what}`,
    ...references.flatMap((reference) => {
      const { from, columns, toColumns } = reference
      const lines = related.tables.get(from)
      const keys =
        lines?.columns.filter(({ name }) => lines.primaryKey.includes(name)).map(({ sql }) => `l.${sql}`) ?? []
      const order = keys.length === 0 ? '' : ` order by ${keys.join(', ')}`
      return [
        `  -- (select jsonb_agg(jsonb_build_object('NAME', l.FILL_IN)${order}) from ${from} l`,
        `  --   where ${matchSql('l', columns, 'h', toColumns)} and FILL_IN)${related.guesses.includes(reference) ? ' -- a guess: no foreign key' : ''}`,
        ...columnLines(related, from).map((line) => `  ${line}`),
      ]
    }),
  ]
}

const columnLines = ({ tables }: RelatedTables, name: string): string[] =>
  tables.has(name) ? [`--     has ${tables.get(name)?.columns.map(describeCandidate).join(', ')}`] : []

function matchSql(alias: string, columns: readonly string[], other: string, otherColumns: readonly string[]): string {
  if (columns.length === 0) return `${alias}.FILL_IN = ${other}.FILL_IN`
  return columns.map((column, i) => `${alias}.${column} = ${other}.${otherColumns[i]}`).join(' and ')
}

/** A name may contain a line break, which would end a comment. */
const keepCommentOnOneLine = (line: string) =>
  line.includes('--') ? line.replace(/[\n\r\u0085\u2028\u2029]+/g, ' ') : line
