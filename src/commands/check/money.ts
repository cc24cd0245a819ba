import type pg from 'pg'
import { firstKeyOfPath } from '../../mapping/compilePath.ts'
import type { Mappings } from '../../mapping/loadMappings.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { OutboxRecord } from '../../model/outbox.ts'
import { idsParameter } from '../../outbox/contentQueries.ts'
import { findCurrencyColumns, isCurrencyCode } from '../../outbox/currencyColumns.ts'
import { type OutboxTable, qualifiedNameSql } from '../../outbox/outboxTable.ts'
import { addTableSchemaIfFound } from '../../outbox/readTableShape.ts'
import { quoteIdentifier, withSearchPathOfRole } from '../../postgres/database.ts'
import { errorCodeOf } from '../../postgres/sqlState.ts'
import { readPayload } from '../../yaml/exactJson.ts'
import { type Finding, makeFinding } from './finding.ts'

/** Finds amounts that may be sent wrong although each record maps. */
export async function checkMoney(
  erp: pg.Pool,
  described: OutboxTable,
  mappings: Mappings,
  records: readonly OutboxRecord[],
): Promise<Finding[]> {
  const table = await addTableSchemaIfFound(erp, described)
  const findings: Finding[] = []
  for (const mapping of mappings.values()) {
    const waiting = records.filter(({ type }) => type === mapping.type)
    const lines = new Set([
      ...(await findWrongColumns(erp, table, mapping)),
      ...findCurrenciesInPayloads(table, mapping, waiting),
    ])
    if (lines.size > 0) findings.push(makeFinding(`money of ${mapping.type}`, 'warning', ...lines))
  }
  return findings
}

const amountsOf = ({ fields }: Mapping) =>
  fields.filter(({ isAmount, from, lookup }) => isAmount && from !== null && lookup === null)

async function findWrongColumns(erp: pg.Pool, table: OutboxTable, mapping: Mapping): Promise<string[]> {
  const amounts = amountsOf(mapping)
  const columns = amounts.length === 0 ? null : await readPayloadColumns(erp, table, mapping)
  if (columns === null) return []
  const columnOf = (from: string | null) => columns.find(({ name }) => name === firstKeyOfPath(from ?? ''))
  const inexact = amounts.flatMap(({ name, from }) => {
    const type = inexactTypes.get(columnOf(from)?.dataTypeID ?? 0)
    return type === undefined
      ? []
      : [`${name} reads ${from}, which is ${type}. That is not exact: make the column numeric, or cast it in a query`]
  })
  const tables = amounts.map(({ from }) => columnOf(from)?.tableID ?? 0).filter((id) => id !== 0)
  const used = textsUsing(table, mapping)
  const unused = new Set<string>()
  for (const id of new Set(tables)) {
    const { rows } = await erp.query<{ sql: string }>(
      `select format('%I.%I', n.nspname, c.relname) as sql from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = $1`,
      [id],
    )
    for (const name of rows[0] === undefined ? [] : await findCurrencyColumns(erp, rows[0].sql))
      if (!isNamed(name, used)) unused.add(name)
  }
  return [...inexact, ...[...unused].map(unusedCurrency)]
}

/** By the oid of the type: real, double precision, money. */
const inexactTypes = new Map([
  [700, 'real'],
  [701, 'double precision'],
  [790, 'money'],
])

/** Reads no row. Null if the payload is JSON, or the query fails, which the finding `queries` reports. */
async function readPayloadColumns(
  erp: pg.Pool,
  table: OutboxTable,
  { source, document }: Mapping,
): Promise<pg.FieldDef[] | null> {
  try {
    // The client's query may name tables without their schemas.
    const sessions = withSearchPathOfRole(erp)
    if (source !== null)
      return (await sessions.query(`select * from (${source.sql}\n) r limit 0`, [idsParameter({ document }, [])]))
        .fields
    if (table.payload.kind === 'column') return null
    const { columns } = table.payload
    const list = columns === null ? ['*'] : [...columns].map((pair) => pair.map(quoteIdentifier).reverse().join(' as '))
    return (await erp.query(`select ${list.join(', ')} from ${qualifiedNameSql(table)} limit 0`)).fields
  } catch (error) {
    if (typeof errorCodeOf(error) === 'string') return null
    throw error
  }
}

/** Returns the texts that may choose rows by their currency or send it: paths, the query, the filter, the condition. */
const textsUsing = (table: OutboxTable, { fields, source, document }: Mapping): string[] =>
  [...fields.map(({ from }) => from), source?.sql, table.filter, document?.condition].filter((text) => text != null)

const isNamed = (name: string, texts: readonly string[]): boolean =>
  texts.some((text) => new RegExp(`(?<![\\p{L}\\p{N}_])${RegExp.escape(name)}(?![\\p{L}\\p{N}_])`, 'u').test(text))

const unusedCurrency = (name: string) =>
  `"${name}" has currencies, and neither a field nor the filter nor a query reads it. The service takes amounts in euro, so an amount in another currency is sent as euro: leave such rows out with the filter`

/** Looks at the payloads that the ERP wrote as JSON. */
function findCurrenciesInPayloads(table: OutboxTable, mapping: Mapping, records: readonly OutboxRecord[]): string[] {
  if (table.payload.kind !== 'column' || mapping.source !== null || amountsOf(mapping).length === 0) return []
  const values = new Map<string, unknown[]>()
  for (const { payload } of records) {
    const parsed = readPayload(payload ?? '{}')
    for (const [name, value] of parsed.kind === 'payload' ? Object.entries(parsed.payload) : [])
      values.set(name, [...(values.get(name) ?? []), value])
  }
  const used = [table.filter, ...mapping.fields.map(({ from }) => from)].filter((text) => text !== null)
  return [...values]
    .filter(
      ([name, all]) => all.every((value) => typeof value === 'string' && isCurrencyCode(value)) && !isNamed(name, used),
    )
    .map(([name]) => unusedCurrency(name))
}
