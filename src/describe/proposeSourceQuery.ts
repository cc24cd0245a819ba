import { quoteLiteral } from '../postgres/database.ts'
import { onOneLine } from '../yaml/yamlLines.ts'
import { type CatalogColumn, type CatalogTable, labelColumns } from './catalogTable.ts'
import { comparableSql } from './proposeCapture.ts'
import type { RelatedTable, RelatedTables } from './relatedTables.ts'

/**
 * Proposes the query for `source`. The joins follow from keys. The user chooses the lines and what other tables add.
 *
 * @param key the columns that identify a row; empty if none do
 */
export function proposeSourceQuery(
  table: CatalogTable,
  key: readonly CatalogColumn[],
  { above, below }: RelatedTables,
  hasItems: boolean,
): string[] {
  const joins = above.flatMap((each, i) => {
    const alias = `r${i + 1}`
    return [onOneLine(`-- left join ${each.sql} ${alias} on ${matchSql(alias, each)}`), ...columnsComment(each)]
  })
  const selected = selectColumns(table, key)
  return [
    'select',
    ...selected.map((column, i) => `  ${column}${hasItems || i < selected.length - 1 ? ',' : ''}`),
    ...(hasItems ? itemsLines(below) : []),
    ...fromLines(table, key),
    ...(joins.length === 0
      ? []
      : ['-- To add what these tables have, join them, and select r1.COLUMN as NAME:', ...joins]),
    ...whereLines(key),
  ]
}

function fromLines({ sql }: CatalogTable, key: readonly CatalogColumn[]): string[] {
  if (key.length < 2) return [`from ${sql} h`]
  const match = key.map((column) => `h.${column.sql} = k.${column.sql}`).join(' and ')
  return [`from jsonb_populate_recordset(null::${sql}, $1) k`, `join ${sql} h on ${match}`]
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

function itemsLines(below: readonly RelatedTable[]): string[] {
  const what =
    below.length === 0
      ? 'the list of lines. No table refers to this one'
      : 'the list of lines: a query below, with the values to send, and a condition for the lines that count'
  return [
    `  FILL_IN as items -- FILL IN: ${what}`,
    ...below.flatMap((each) => {
      if (each.table === null) return []
      const { columns, primaryKey } = each.table
      const keys = columns.filter(({ name }) => primaryKey.includes(name))
      const order = keys.length === 0 ? '' : ` order by ${keys.map(({ sql }) => `l.${sql}`).join(', ')}`
      const guess = each.isGuess ? ' -- a guess: no foreign key' : ''
      return [
        onOneLine(`-- (select jsonb_agg(jsonb_build_object('NAME', l.FILL_IN)${order}) from ${each.sql} l`),
        onOneLine(`--   where ${matchSql('l', each)} and FILL_IN)${guess}`),
        ...columnsComment(each),
      ].map((line) => `  ${line}`)
    }),
  ]
}

const columnsComment = ({ table }: RelatedTable): string[] =>
  table === null ? [] : [onOneLine(`--     has ${labelColumns(table.columns).join(', ')}`)]

function matchSql(alias: string, { columns, ownColumns }: RelatedTable): string {
  if (columns.length === 0) return `${alias}.FILL_IN = h.FILL_IN`
  return columns.map((column, i) => `${alias}.${column} = h.${ownColumns[i]}`).join(' and ')
}
