import { captureFunctionName } from '../outbox/captureTriggers.ts'
import { quoteLiteral } from '../postgres/database.ts'
import { onOneLine, quoteForYaml, withComment, withFillIn } from '../yaml/yamlLines.ts'
import { type CatalogColumn, labelColumns, mayChooseRows } from './catalogTable.ts'
import type { DocumentParts, PartReference, Path } from './documentParts.ts'
import { whichToSend } from './proposeOutboxFile.ts'

export interface CaptureTarget {
  readonly type: string
  /** Quoted, with its schema. */
  readonly outbox: string
  /** The name of the file. */
  readonly file: string
  /** `--child` as the user gave it. */
  readonly children: readonly string[]
  /** Roles that write to the document's tables and not to the outbox, quoted. */
  readonly writers: readonly string[]
}

/** Proposes the trigger that writes the keys of changed documents to the outbox, as SQL to read and run. */
export function proposeCapture(
  { document, key, paths }: DocumentParts,
  { type, outbox, file, children, writers }: CaptureTarget,
): string {
  const name = captureFunctionName(type)
  const fn = `${document.schemaSql}.${name}`
  const tables = [...Map.groupBy(paths, ([{ table }]) => table.sql)]
  const branches = tables.flatMap(([table, its], i) => [
    `  ${i === 0 ? 'if' : 'elsif'} tg_argv[0] = ${quoteLiteral(table)} then`,
    `    keys := ${its.map((path) => keysSql(path, key)).join(' || ')};`,
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
  const below = children.length === 0 ? '' : `, with ${children.map((child) => `--child "${child}"`).join(' ')}`
  const comments = [
    `-- Captures the documents of ${document.sql}${below}.`,
    `-- Each change of a row writes the key of its document to ${outbox}, once in a transaction. The`,
    '-- daemon reads the document when it takes that row. An error here fails the statement that fired the trigger.',
    `-- Run it:     psql "$DATABASE_URL" -1 -v ON_ERROR_STOP=1 -f ${file}`,
    `-- Remove it:  drop function ${fn}() cascade;`,
  ]
  const lines = [
    ...comments.map(onOneLine),
    `drop function if exists ${fn}() cascade;`,
    `create function ${fn}() returns trigger language plpgsql`,
    `set search_path = pg_catalog, pg_temp as $capture$`,
    '#variable_conflict use_column -- so that a condition may have any column',
    'declare',
    '  keys jsonb[]; -- before and after, because a row may move to another document',
    'begin',
    ...branches,
    '  else -- truncate',
    `    keys := array(select ${keySql('d', paths[0][0], key)} from ${document.sql} d);`,
    '  end if;',
    `  insert into ${outbox} (type, key, payload)`,
    `  select ${quoteLiteral(type)}, ${keyText},`,
    `    jsonb_build_object('id', key, 'captured_in', pg_current_xact_id()::text)`,
    `  from unnest(keys) key where ${hasOneColumn ? 'key is not null' : 'key = jsonb_strip_nulls(key)'}`,
    '  on conflict do nothing; -- this transaction has written that key',
    '  return null;',
    'end $capture$;',
    ...triggers,
    ...writers.map((role) => `grant insert on ${outbox} to ${role};`),
  ]
  return `${lines.join('\n')}\n`
}

/**
 * Proposes `document` of the mapping file, which says the daemon what a key names.
 *
 * @param currencies columns with codes of currencies
 */
export function proposeDocument({ document, key }: DocumentParts, currencies: readonly string[]): string[] {
  const names = key.map(({ name }) => quoteForYaml(name))
  return [
    withComment('document:', 'a row of the outbox has the key of a document'),
    `  table: ${quoteForYaml(document.sql)}`,
    `  key: ${names.length === 1 ? names[0] : `[${names.join(', ')}]`}`,
    ...withFillIn(
      '  condition: FILL_IN',
      `${whichToSend(currencies)}. It is asked again when the document changes, so name later states, too. Write h.COLUMN`,
      labelColumns(document.columns.filter(mayChooseRows)),
    ),
  ]
}

/** The keys of the documents that the old and the new row belong to. */
function keysSql(path: Path, key: readonly CatalogColumn[]): string {
  const [{ condition }, ...others] = path
  const last = path.at(-1) as PartReference
  if (others.length === 0 && condition === null)
    return `array[${keySql('old', last, key)}, ${keySql('new', last, key)}]`
  const aliases = path.map((_, i) => (i === 0 ? 'r' : `p${i}`))
  const joins = others.map(({ table }, i) => {
    const { columns, toColumns } = path[i] as PartReference
    const match = columns.map(({ sql }, n) => `${aliases[i + 1]}.${toColumns[n]?.sql} = ${aliases[i]}.${sql}`)
    return `join ${table.sql} ${aliases[i + 1]} on ${match.join(' and ')}`
  })
  const rows = '(select old.* union all select new.*) r'
  // Inside, so that the condition's names cannot mean columns of the tables above.
  const from = condition === null ? rows : `(select * from ${rows} where ${condition}) r`
  return `array(select ${keySql(aliases.at(-1) as string, last, key)} from ${[from, ...joins].join('\n      ')})`
}

/**
 * The document's key as JSON: a value, or an object of several columns.
 *
 * @param row an alias of the reference's table
 */
function keySql(row: string, { columns, toColumns }: PartReference, key: readonly CatalogColumn[]): string {
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
