import { type SourceField, sourceFieldOfColumn } from '../../mapping/sourceFields.ts'
import { chooseByUsualName, isUsualName, type UsualNameKind } from '../../mapping/usualNames.ts'
import {
  type CatalogColumn,
  type CatalogTable,
  isIntegerOrNumericColumn,
  isTextColumn,
  isTimeColumn,
  quoteNameIfNeeded,
  quoteTableIfNeeded,
} from './catalogTable.ts'
import type { DocumentLines, ErpDocument, TableLookup } from './relatedTables.ts'

interface SourceProposal {
  readonly sql: readonly string[]
  readonly fields: readonly SourceField[]
  readonly warnings: readonly string[]
}

interface Selected {
  /** Needs no quotes in a path. */
  readonly name: string
  readonly alias: 'h' | 'c'
  readonly column: CatalogColumn
}

/**
 * The query's columns have the names of docs/reference/interface.md.
 *
 * @param isOrder true proposes the items and the customer's uuid; false the customer's number, the date and the amount
 */
export function proposeSourceQuery(document: ErpDocument, isOrder: boolean): SourceProposal {
  const { header, key, customer, lines } = document
  const amounts = header.columns.filter((column) => isAmount(column) && column.name !== key.name)
  const all = [
    ...selectCustomer(document, isOrder),
    ...selectUsual(header.columns.filter(isTimeColumn), 'orderDate', isOrder),
    ...selectUsual(amounts, 'amount', isOrder),
    ...selectUsual(header.columns.filter(isNumberOrText), 'reference', true),
  ]
  const selected = [...new Map(all.map((each) => [each.name, each])).values()]
  const hasItems = isOrder && lines !== null
  const columns = [
    `h.${quoteNameIfNeeded(key.name)} as id`,
    ...selected.map(
      ({ name, alias, column }) => `${alias}.${quoteNameIfNeeded(column.name)} as ${quoteNameIfNeeded(name)}`,
    ),
    ...(hasItems ? [itemsSql(lines, key)] : []),
  ]
  const needsCustomer = customer !== null && selected.some(({ alias }) => alias === 'c')
  const sql = [
    'select',
    columns.map((column) => `  ${column}`).join(',\n'),
    `from ${quoteTableIfNeeded(header)} h`,
    ...(needsCustomer ? [joinSql(customer, 'c', 'h')] : []),
    `where h.${quoteNameIfNeeded(key.name)} = any($1)`,
  ].join('\n')
  const items = { name: 'items', path: 'items', kind: 'array', columnType: '' } as const
  return {
    sql: sql.split('\n'),
    fields: [
      ...selected.map(({ name, column }) => sourceFieldOfColumn(name, column.type, column.exactType)),
      ...(hasItems ? [items] : []),
    ],
    warnings: isOrder ? [] : currencyWarnings(header),
  }
}

const isAmount = ({ type }: CatalogColumn) => /^(numeric|money|real|double precision|bigint|integer)$/.test(type)
const isNumberOrText = (column: CatalogColumn) => isTextColumn(column) || isIntegerOrNumericColumn(column)

/** The number of columns that are selected for the user to choose from if no name suggests one. */
const candidatesMax = 8

const selectEach = (columns: readonly CatalogColumn[], alias: 'h' | 'c', prefix = ''): Selected[] =>
  columns
    .slice(0, candidatesMax)
    .map((column) => ({ name: `${prefix}${column.name}`.replace(/[^\p{L}\p{N}_-]+/gu, '_'), alias, column }))

/** Prefers a number or uuid that is known outside of the ERP. */
function selectCustomer({ header, customer }: ErpDocument, isOrder: boolean): Selected[] {
  const own =
    customer === null
      ? chooseByUsualName(header.columns, 'customer')
      : (header.columns.find(({ name }) => name === customer.column) ?? null)
  if (own === null) return selectEach(header.columns.filter(isTextColumn), 'h')
  const ownId: Selected = { name: 'customerId', alias: 'h', column: own }
  if (customer === null) return [ownId]
  const uuid = isOrder ? customer.table.columns.find(({ type }) => type === 'uuid') : undefined
  if (uuid !== undefined) return [{ ...ownId, alias: 'c', column: uuid }]
  if (isTextColumn(own)) return [ownId]
  const code = findCode(customer)
  if (code !== null) return [{ ...ownId, alias: 'c', column: code }]
  if (isUsualName(customer.key, 'code')) return [ownId]
  return selectEach(customer.table.columns.filter(isTextColumn), 'c', 'customer_')
}

/** Finds the number or code by which a customer or an article is known outside of the ERP. */
function findCode({ table, key }: TableLookup): CatalogColumn | null {
  const others = table.columns.filter((column) => column.name !== key && isNumberOrText(column))
  return chooseByUsualName(others, 'code') ?? others.find((column) => isTextColumn(column) && column.isUnique) ?? null
}

/**
 * Selects the column with a usual name, under the service's name. Otherwise selects candidates under their own names.
 */
function selectUsual(fitting: readonly CatalogColumn[], what: UsualNameKind, isOptional: boolean): Selected[] {
  const chosen = chooseByUsualName(fitting, what)
  if (chosen !== null) return [{ name: what, alias: 'h', column: chosen }]
  return isOptional ? [] : selectEach(fitting, 'h')
}

const itemParts = [
  { name: 'article', usual: 'article', fits: () => true },
  { name: 'description', usual: 'description', fits: isTextColumn },
  { name: 'quantity', usual: 'quantity', fits: isAmount },
  { name: 'unit', usual: 'unit', fits: isTextColumn },
  { name: 'unitPrice', usual: 'unitPrice', fits: isAmount },
  { name: 'amount', usual: 'lineAmount', fits: isAmount },
] as const

/** An article appears by its number, not by its id. */
function itemsSql(lines: DocumentLines, key: CatalogColumn): string {
  const { table, column, condition } = lines
  const free = table.columns.filter(({ name }) => name !== column)
  const joins: string[] = []
  const members = itemParts.flatMap(({ name, usual, fits }) => {
    const lookup = name === 'article' || name === 'unit' ? lines[name] : null
    const own = free.find((each) => each.name === lookup?.column) ?? chooseByUsualName(free.filter(fits), usual)
    if (own === null) return []
    const code = lookup === null || isTextColumn(own) ? null : findCodeOrDescription(lookup)
    if (lookup === null || code === null) return [{ name, own: own.name, sql: `l.${quoteNameIfNeeded(own.name)}` }]
    const alias = name === 'article' ? 'a' : 'u'
    joins.push(`    ${joinSql(lookup, alias, 'l')}`)
    return [{ name, own: own.name, sql: `${alias}.${quoteNameIfNeeded(code.name)}` }]
  })
  // Selects all numbers, because a missing quantity is worse than a number too many.
  const numbers = members.some(({ name }) => name === 'quantity')
    ? []
    : free.filter((each) => isAmount(each) && !members.some(({ own }) => own === each.name))
  const parts = [...members, ...numbers.map(({ name }) => ({ name, own: name, sql: `l.${quoteNameIfNeeded(name)}` }))]
  const left = free.filter(({ name }) => !parts.some(({ own }) => own === name)).map(({ name }) => name)
  const position = chooseByUsualName(free.filter(isIntegerOrNumericColumn), 'position')?.name
  const order = [...new Set([position, table.primaryKey.at(-1)].filter((name) => name !== undefined))]
  const orderBy =
    order.length === 0 ? '' : ` order by ${order.map((name) => `l.${quoteNameIfNeeded(name)}`).join(', ')}`
  return [
    '(select jsonb_agg(jsonb_build_object(',
    parts.map(({ name, sql }) => `      '${name.replaceAll("'", "''")}', ${sql}`).join(',\n'),
    `    )${orderBy})`,
    ...(left.length === 0 ? [] : [`    -- not in the list: ${left.join(', ').replace(/[\s\p{Cc}]+/gu, ' ')}`]),
    `    from ${quoteTableIfNeeded(table)} l`,
    ...joins,
    `    where l.${quoteNameIfNeeded(column)} = h.${quoteNameIfNeeded(key.name)}${condition === null ? '' : ` and ${condition}`}) as items`,
  ].join('\n')
}

const findCodeOrDescription = (lookup: TableLookup): CatalogColumn | null =>
  findCode(lookup) ?? chooseByUsualName(lookup.table.columns.filter(isTextColumn), 'description')

const joinSql = ({ table, key, column }: TableLookup, alias: string, from: string): string =>
  `left join ${quoteTableIfNeeded(table)} ${alias} on ${alias}.${quoteNameIfNeeded(key)} = ${from}.${quoteNameIfNeeded(column)}`

function currencyWarnings({ name, columns }: CatalogTable): string[] {
  const currency = chooseByUsualName(columns, 'currency')
  if (currency === null) return []
  return [
    `the service takes amounts in euro, and "${name}" has a currency in "${currency.name}": leave out documents in other currencies`,
  ]
}
