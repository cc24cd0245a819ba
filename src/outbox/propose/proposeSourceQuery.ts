import { type CatalogColumn, type CatalogTable, describeCandidate } from './catalogTable.ts'
import type { RelatedTables } from './relatedTables.ts'

/**
 * Proposes the query for `source`. The joins follow from keys. The user chooses the lines and what other tables add.
 *
 * @param id null if no column identifies a row
 */
export function proposeSourceQuery(
  table: CatalogTable,
  id: CatalogColumn | null,
  related: RelatedTables,
  hasItems: boolean,
): string[] {
  const joins = related.refersTo.flatMap(({ to, columns, toColumns }, i) => {
    const alias = `r${i + 1}`
    return [`-- left join ${to} ${alias} on ${matchSql(alias, toColumns, 'h', columns)}`, ...columnLines(related, to)]
  })
  const selected = selectColumns(table, id)
  return [
    'select',
    ...selected.map((column, i) => `  ${column}${hasItems || i < selected.length - 1 ? ',' : ''}`),
    ...(hasItems ? itemsLines(related) : []),
    `from ${table.sql} h`,
    ...(joins.length === 0
      ? []
      : ['-- To add what these tables have, join them, and select r1.COLUMN as NAME:', ...joins]),
    id === null
      ? 'where h.FILL_IN = any($1) -- FILL IN: the column that identifies a row'
      : `where h.${id.sql} = any($1)`,
  ].map(keepCommentOnOneLine)
}

/** Selects all columns, and the key as `id`. */
function selectColumns({ columns }: CatalogTable, id: CatalogColumn | null): string[] {
  if (id?.name === 'id') return ['h.*']
  const others = columns.filter(({ name }) => name !== 'id').map(({ sql }) => `h.${sql}`)
  return [`h.${id?.sql ?? 'FILL_IN'} as id`, others.length === columns.length ? 'h.*' : others.join(', ')]
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
