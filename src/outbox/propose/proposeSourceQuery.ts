import { type SourceField, sourceFieldOfColumn } from '../../mapping/sourceFields.ts'
import { chooseByUsualName, isUsualName, rankByUsualName, type UsualNameKind } from '../../mapping/usualNames.ts'
import type { CatalogColumn, CatalogTable } from './catalogTable.ts'
import { isNumberColumn, isTextColumn, isTimeColumn } from './findSentColumnCandidates.ts'
import type { ErpDocument, Lines, Lookup } from './relatedTables.ts'
import { quoteName, quoteTable } from './sqlNames.ts'

/** The query that reads documents by their ids, and its columns. */
export interface SourceProposal {
  readonly sql: readonly string[]
  readonly fields: readonly SourceField[]
  readonly warnings: readonly string[]
}

interface Selected {
  readonly name: string
  readonly sql: string
  readonly column: CatalogColumn
}

/** The number of columns that are selected for the user to choose from if no name suggests one. */
const candidatesMax = 8

/**
 * Proposes the query of a mapping file. Its columns have the names of docs/reference/interface.md.
 *
 * @param isOrder true for items and a customer's uuid, false for a customer's number, a date and an amount
 */
export function proposeSourceQuery(document: ErpDocument, isOrder: boolean): SourceProposal {
  const { header, key, customer, lines } = document
  const selected = [
    ...selectCustomer(document, isOrder),
    ...selectUsual(header.columns.filter(isTimeColumn), 'orderDate', isOrder),
    ...selectUsual(
      header.columns.filter((column) => isAmount(column) && column.name !== key.name),
      'amount',
      isOrder,
    ),
    ...selectUsual(header.columns.filter(isName), 'reference', true),
  ].filter(({ name }, i, all) => all.findIndex((other) => other.name === name) === i)
  const items = isOrder && lines !== null ? [`${itemsSql(lines, key)} as items`] : []
  const columns = [
    `h.${quoteName(key.name)} as id`,
    ...selected.map(({ name, sql }) => `${sql} as ${quoteName(name)}`),
    ...items,
  ]
  const needsCustomer = customer !== null && selected.some(({ sql }) => sql.startsWith('c.'))
  const sql = [
    'select',
    columns.map((column) => `  ${column}`).join(',\n'),
    `from ${quoteTable(header)} h`,
    ...(needsCustomer ? [joinSql(customer, 'c', 'h')] : []),
    `where h.${quoteName(key.name)} = any($1)`,
  ].join('\n')
  return {
    sql: sql.split('\n'),
    fields: [
      ...selected.map(({ name, column }) => sourceFieldOfColumn(name, column.type, column.exactType)),
      ...items.map(() => ({ path: 'items', kind: 'array', about: '' }) as const),
    ],
    warnings: isOrder ? [] : currencyWarnings(header),
  }
}

const isAmount = ({ type }: CatalogColumn) => /^(numeric|money|real|double precision|bigint|integer)$/.test(type)
const isName = (column: CatalogColumn) => isTextColumn(column) || isNumberColumn(column)
const nameOf = ({ name }: CatalogColumn) => name

function selectCustomer({ header, customer }: ErpDocument, isOrder: boolean): Selected[] {
  const own =
    customer === null
      ? chooseByUsualName(header.columns, nameOf, 'customer')
      : header.columns.find(({ name }) => name === customer.column)
  const uuid = isOrder && own?.type !== 'uuid' ? customer?.table.columns.find(({ type }) => type === 'uuid') : undefined
  if (customer !== null && uuid !== undefined) return [select(uuid, 'c', 'customerId')]
  if (
    customer !== null &&
    own !== undefined &&
    own !== null &&
    !isTextColumn(own) &&
    !(isOrder && own.type === 'uuid')
  ) {
    const code = findCode(customer)
    if (code !== null) return [select(code, 'c', 'customerId')]
    if (isUsualName(customer.key, 'code')) return [select(own, 'h', 'customerId')]
    const texts = customer.table.columns.filter(isTextColumn).slice(0, candidatesMax)
    if (texts.length > 0) return texts.map((column) => select(column, 'c', `customer_${column.name}`))
  }
  if (own) return [select(own, 'h', 'customerId')]
  return header.columns
    .filter(isTextColumn)
    .slice(0, candidatesMax)
    .map((column) => select(column, 'h', column.name))
}

/** Finds the customer's number or code that is known outside the ERP. */
function findCode({ table, key }: Lookup): CatalogColumn | null {
  const others = table.columns.filter((column) => column.name !== key && isName(column))
  return (
    chooseByUsualName(others, nameOf, 'code') ??
    others.find((column) => isTextColumn(column) && column.isUnique) ??
    null
  )
}

/** Selects the column with a usual name under the service's name, or candidates under their own names. */
function selectUsual(
  fitting: readonly CatalogColumn[],
  what: 'orderDate' | 'amount' | 'reference',
  isOptional: boolean,
) {
  const chosen = chooseByUsualName(fitting, nameOf, what)
  if (chosen !== null) return [select(chosen, 'h', what)]
  if (isOptional) return []
  const { alike } = rankByUsualName(fitting, nameOf, what)
  const candidates = alike.length > 0 ? alike : fitting
  return candidates.slice(0, candidatesMax).map((column) => select(column, 'h', column.name))
}

/** @param name of the result's column; has only characters that a path needs no quotes for */
const select = (column: CatalogColumn, alias: 'h' | 'c', name: string): Selected => ({
  name: name.replace(/[^\p{L}\p{N}_-]+/gu, '_'),
  sql: `${alias}.${quoteName(column.name)}`,
  column,
})

/** Makes the ordered list of lines. An article appears by its number, not by its id. */
function itemsSql({ table, column, article, unit, condition }: Lines, key: CatalogColumn): string {
  const free = table.columns.filter(({ name }) => name !== column)
  const used = new Set<string>()
  const member = (
    name: string,
    what: UsualNameKind,
    fits: (column: CatalogColumn) => boolean,
    lookup: Looked = null,
  ) => {
    const own =
      free.find(({ name }) => name === lookup?.lookup.column) ?? chooseByUsualName(free.filter(fits), nameOf, what)
    if (own === null) return []
    used.add(own.name)
    const code =
      lookup === null || isTextColumn(own) ? null : (findCode(lookup.lookup) ?? findDescription(lookup.lookup))
    return [{ name, sql: code === null ? `l.${quoteName(own.name)}` : `${lookup?.alias}.${quoteName(code.name)}` }]
  }
  const any = () => true
  const members = [
    ...member('article', 'article', any, article && { lookup: article, alias: 'a' }),
    ...member('description', 'description', isTextColumn),
    ...member('quantity', 'quantity', isAmount),
    ...member(
      'unit',
      'unit',
      (each) => isTextColumn(each) || each.name === unit?.column,
      unit && { lookup: unit, alias: 'u' },
    ),
    ...member('unitPrice', 'unitPrice', isAmount),
    ...member('amount', 'lineAmount', isAmount),
  ]
  // A missing quantity is worse than one number too many.
  if (!members.some(({ name }) => name === 'quantity'))
    for (const { name } of free.filter((each) => isAmount(each) && !used.has(each.name))) {
      used.add(name)
      members.push({ name, sql: `l.${quoteName(name)}` })
    }
  const left = free.filter(({ name }) => !used.has(name)).map(({ name }) => name)
  const needs = (alias: string) => members.some(({ sql }) => sql.startsWith(`${alias}.`))
  const position = chooseByUsualName(free.filter(isNumberColumn), nameOf, 'position')?.name
  const orders = new Set([position, table.primaryKey.at(-1)].filter((name) => name !== undefined))
  return [
    '(select jsonb_agg(jsonb_build_object(',
    members.map(({ name, sql }) => `      '${name.replaceAll("'", "''")}', ${sql}`).join(',\n'),
    `    )${orders.size === 0 ? '' : ` order by ${[...orders].map((name) => `l.${quoteName(name)}`).join(', ')}`})`,
    ...(left.length === 0 ? [] : [`    -- not in the list: ${left.join(', ').replace(/[\s\p{Cc}]+/gu, ' ')}`]),
    `    from ${quoteTable(table)} l`,
    ...(article !== null && needs('a') ? [`    ${joinSql(article, 'a', 'l')}`] : []),
    ...(unit !== null && needs('u') ? [`    ${joinSql(unit, 'u', 'l')}`] : []),
    `    where l.${quoteName(column)} = h.${quoteName(key.name)}${condition === null ? '' : ` and ${condition}`})`,
  ].join('\n')
}

type Looked = { readonly lookup: Lookup; readonly alias: string } | null

const findDescription = ({ table }: Lookup) =>
  chooseByUsualName(table.columns.filter(isTextColumn), nameOf, 'description')

const joinSql = ({ table, key, column }: Lookup, alias: string, from: string): string =>
  `left join ${quoteTable(table)} ${alias} on ${alias}.${quoteName(key)} = ${from}.${quoteName(column)}`

function currencyWarnings({ name, columns }: CatalogTable): string[] {
  const currency = chooseByUsualName(columns, nameOf, 'currency')
  if (currency === null) return []
  return [
    `the service takes amounts in euro, and "${name}" has a currency in "${currency.name}": leave out documents in other currencies`,
  ]
}
