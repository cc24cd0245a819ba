import { captureFunctionName } from '../outbox/captureTriggers.ts'
import { quoteIdentifier, quoteLiteral } from '../postgres/database.ts'
import { quoteForYaml, withComment, withFillIn } from '../yaml/yamlLines.ts'
import { type CatalogColumn, type CatalogTable, listOf, mayChooseRows } from './catalogTable.ts'
import type { DocumentParts, PartReference } from './documentParts.ts'

export interface CaptureTarget {
  readonly type: string
  /** Quoted, with its schema. */
  readonly outbox: string
  /** The command that wrote the file, and the file's name. */
  readonly command: string
  readonly file: string
  /** Roles that write to the document's tables and not to the outbox, quoted. */
  readonly writers: readonly string[]
}

/** Proposes the trigger that writes the keys of changed documents to the outbox, as SQL to read and run. */
export function proposeCapture(parts: DocumentParts, { type, outbox, command, file, writers }: CaptureTarget): string {
  const { document, key, references } = parts
  const name = captureFunctionName(type)
  const fn = `${schemaPrefix(document)}${name}`
  const tables = [...Map.groupBy([ownKey(parts), ...references], ({ table }) => table.sql)]
  const branches = tables.flatMap(([table, its], i) => [
    `  ${i === 0 ? 'if' : 'elsif'} tg_argv[0] = ${quoteLiteral(table)} then`,
    `    keys := ${its.map((reference) => keysSql(reference, parts)).join(' || ')};`,
  ])
  const triggers = tables.flatMap(([table]) => [
    `create trigger ${name} after insert or update or delete on ${table}`,
    `  for each row execute function ${fn}(${quoteLiteral(table)});`,
    `create trigger ${name}_all before truncate on ${table}`,
    `  for each statement execute function ${fn}();`,
  ])
  const hasOneColumn = key.length === 1
  const keyText = hasOneColumn
    ? `key #>> '{}'`
    : `concat_ws('/', ${key.map((column) => `key ->> ${quoteLiteral(column.name)}`).join(', ')})`
  const conditions = references.flatMap(({ condition }) => condition ?? [])
  // A condition may have a column with the name of our variable, or texts between dollars.
  const directive = conditions.length === 0 ? [] : ['#variable_conflict use_column']
  const quote = conditions.some((condition) => condition.includes('$$')) ? '$capture$' : '$$'
  const lines = [
    `-- Captures the documents of ${document.sql}. Written by: ${command}`,
    `-- Each change of a row writes the key of its document to ${outbox}, once in a transaction. The`,
    '-- daemon reads the document when it takes that row. An error here fails the statement that fired the trigger.',
    `-- Run it:     psql -1 -v ON_ERROR_STOP=1 -f ${file}`,
    `-- Remove it:  drop function ${fn}() cascade;`,
    `drop function if exists ${fn}() cascade;`,
    `create function ${fn}() returns trigger language plpgsql`,
    `set search_path = pg_catalog, pg_temp as ${quote}`,
    ...directive,
    'declare',
    '  keys jsonb[]; -- before and after, because a row may move to another document',
    'begin',
    ...branches,
    '  else -- truncate',
    `    keys := array(select ${keySql('d', key, key)} from ${document.sql} d);`,
    '  end if;',
    `  insert into ${outbox} (type, key, payload)`,
    `  select ${quoteLiteral(type)}, ${keyText},`,
    `    jsonb_build_object('id', key, 'captured_in', pg_current_xact_id()::text)`,
    `  from unnest(keys) key where ${hasOneColumn ? 'key is not null' : 'key = jsonb_strip_nulls(key)'}`,
    '  on conflict do nothing; -- this transaction has written that key',
    '  return null;',
    `end ${quote};`,
    ...triggers,
    ...writers.map((role) => `grant insert on ${outbox} to ${role};`),
  ]
  return `${lines.map((line) => (line.startsWith('--') ? onOneLine(line) : line)).join('\n')}\n`
}

/** Proposes `document` of the mapping file, which says the daemon what a key names. */
export function proposeDocument({ document, key }: DocumentParts): string[] {
  const names = key.map(({ name }) => quoteForYaml(name))
  const condition = `which documents are sent, in later states, too: a condition in SQL about the row h. For all documents remove this line${listOf(document.columns.filter(mayChooseRows))}`
  return [
    withComment('document:', 'a row of the outbox has the key of a document'),
    `  table: ${quoteForYaml(document.sql)}`,
    `  key: ${names.length === 1 ? names[0] : `[${names.join(', ')}]`}`,
    `  ${withFillIn('condition: FILL_IN', condition)}`,
  ]
}

/** The schema as the table's name in SQL has it, with the point. */
function schemaPrefix({ sql, name }: CatalogTable): string {
  const last = sql.endsWith(`.${name}`) ? name : quoteIdentifier(name)
  return sql.slice(0, -last.length)
}

/** A document names itself. */
const ownKey = ({ document, key }: DocumentParts): PartReference => ({
  table: document,
  columns: key,
  to: document,
  toColumns: key,
  condition: null,
})

/** The keys of the documents that the old and the new row belong to. */
function keysSql(reference: PartReference, parts: DocumentParts): string {
  const { columns, condition } = reference
  const isDirect = leadsToKey(reference, parts)
  if (isDirect && condition === null)
    return `array[${keySql('old', columns, parts.key, reference)}, ${keySql('new', columns, parts.key, reference)}]`
  const joins: string[] = []
  let at = reference
  let alias = 'r'
  for (let i = 1; !leadsToKey(at, parts); i++) {
    const upper = `p${i}`
    joins.push(`join ${at.to.sql} ${upper} on ${matchSql(upper, at.toColumns, alias, at.columns)}`)
    alias = upper
    at = at.to.sql === parts.document.sql ? ownKey(parts) : referenceOf(at.to, parts)
  }
  const rows = '(select old.* union all select new.*) r'
  // Inside, so that the condition's names cannot mean columns of the tables above.
  const from = condition === null ? rows : `(select * from ${rows} where ${condition}) r`
  return `array(select ${keySql(alias, at.columns, parts.key, at)} from ${[from, ...joins].join('\n      ')})`
}

const referenceOf = ({ sql }: CatalogTable, { references }: DocumentParts): PartReference =>
  references.find(({ table }) => table.sql === sql) as PartReference

/** True if the reference's own columns have the document's key. */
const leadsToKey = ({ to, toColumns }: PartReference, { document, key }: DocumentParts): boolean =>
  to.sql === document.sql &&
  toColumns.length === key.length &&
  toColumns.every(({ name }) => key.some((column) => column.name === name))

const matchSql = (
  alias: string,
  columns: readonly CatalogColumn[],
  other: string,
  otherColumns: readonly CatalogColumn[],
): string => columns.map(({ sql }, i) => `${alias}.${sql} = ${other}.${otherColumns[i]?.sql}`).join(' and ')

/**
 * The key in a row as JSON: a value, or an object of several columns.
 *
 * @param columns those of the row that have the key, in the order of `toColumns`
 */
function keySql(
  row: string,
  columns: readonly CatalogColumn[],
  key: readonly CatalogColumn[],
  { toColumns }: Pick<PartReference, 'toColumns'> = { toColumns: key },
): string {
  const values = key.map(({ name }) => {
    const column = columns[toColumns.findIndex((each) => each.name === name)] as CatalogColumn
    return { name, sql: comparableSql(`${row}.${column.sql}`, column) }
  })
  const [first, ...others] = values
  if (first !== undefined && others.length === 0) return `to_jsonb(${first.sql})`
  return `jsonb_build_object(${values.map(({ name, sql }) => `${quoteLiteral(name)}, ${sql}`).join(', ')})`
}

/** A numeric loses zeros at its end, and a character loses blanks, so that equal keys are equal in JSON. */
export function comparableSql(sql: string, column: CatalogColumn): string {
  if (column.type === 'numeric') return `trim_scale(${sql})`
  return column.type === 'character' ? `${sql}::text` : sql
}

/** A name may contain a line break, which would end a comment. */
const onOneLine = (text: string) => text.replace(/[\r\n\u0085\u2028\u2029]+/g, ' ')
