import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { exampleMappingsDir, readDatabaseConfig, readDirForNewMappings } from '../config.ts'
import { DescribeRefused, describeColumn, parseTableName } from '../describe/catalogTable.ts'
import { type DescribedTable, proposeFilesForTable } from '../describe/proposeFilesForTable.ts'
import type { RelatedTable } from '../describe/relatedTables.ts'
import { splitTableName } from '../outbox/outboxTable.ts'
import { escapeControlInLines, pluralize } from '../plainText.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'
import { resourceNames } from '../resources.ts'
import { findFillInPlaces } from '../yaml/yamlLines.ts'
import { defineCommand } from './terminal/command.ts'
import { exitCodes, printJson, printUsageErrors } from './terminal/context.ts'

export const command = defineCommand({
  onlyLooks: true,
  withoutMappings: true,
  description: 'propose a mapping file and an outbox.yaml for a table',
  arguments: [['<table>', 'TABLE or SCHEMA.TABLE, spelled as in the catalog']],
  options: [
    [
      '--endpoint <name>',
      `where the records go: ${resourceNames.join(' or ')} (default: chosen by fields and lines)`,
      { values: resourceNames },
    ],
    ['--type <name>', 'the type of the records (default: the name of the table)'],
    ['--capture', 'propose a trigger that captures changes of documents, in place of outbox.yaml'],
    [
      '--child <reference>',
      'with --capture, any number of times: a table below the document, as TABLE(COLUMN) [where CONDITION]',
      { read: (text: string, before: readonly string[] = []) => [...before, text] },
    ],
    ['--write', 'write the files into MAPPINGS_DIR, unless one of them exists'],
    ['--json', 'print JSON'],
  ],
  help: `Reads the catalog of DATABASE_URL and counts values. It changes nothing.
It shows the table's columns, the foreign keys from and to the table, and tables that may be related by their names. It fills
in what follows from keys and types. What only you can know is marked FILL IN, with the columns that fit: which rows to send,
what says that a row was sent, and each value. The files load only after you filled that in.

Examples:
  outboxd describe sales_order             look first
  outboxd describe sales_order --write     then fill in, and outboxd check
  outboxd describe sales_order --capture --child 'sales_line(order_id)'    a header with lines`,
  /** @returns 3 if the user sees no such table, 1 if outboxd cannot read it or `--write` meets an existing file */
  async action(context, table, options): Promise<number> {
    const { databaseUrl: url, outboxTable } = readDatabaseConfig(context.env)
    const mappingsDir = readDirForNewMappings(context.env)
    const name = parseTableName(table)
    if (name === null)
      return printUsageErrors(context, [
        `"${table}" is not a table name: give TABLE or SCHEMA.TABLE. Quote a name with a dot or a quote as in SQL: outboxd describe '"a.b"'`,
      ])
    const endpoint = resourceNames.find((resource) => resource === options.endpoint) ?? null
    if (options.endpoint !== undefined && endpoint === null)
      return printUsageErrors(context, [
        `--endpoint must be one of ${resourceNames.join(', ')}, and is "${options.endpoint}"`,
      ])
    if (options.write && isInPackage(mappingsDir))
      return printUsageErrors(context, [
        `MAPPINGS_DIR (${mappingsDir}) is inside an installed package, and the next install would delete what is written there. Nothing was written. Set MAPPINGS_DIR to a folder of your own`,
      ])
    if (options.child !== undefined && !options.capture) return printUsageErrors(context, ['--child needs --capture'])
    const { child: children = [], type = null, capture: isCaptured = false } = options
    const capture = isCaptured ? { children, outbox: splitTableName(outboxTable) } : null
    const described = await inspectDatabase({
      of: 'outbox',
      url,
      read: (pool) => proposeFilesForTable(pool, name, { endpoint, type, capture }).catch(asRefusal),
    })
    if (described instanceof DescribeRefused) {
      if (options.json) printJson(context, { table: null, problem: described.message })
      context.stderr.write(`outboxd: ${described.message}\n`)
      return described.isMissing ? exitCodes.nothing : exitCodes.failed
    }
    const files = described.files.map(({ name, text }) => ({ file: path.join(mappingsDir, name), text }))
    const present = options.write ? files.filter(({ file }) => existsSync(file)) : []
    const written = options.write && present.length === 0 ? writeFiles(mappingsDir, files) : []
    const places = files.flatMap(({ file, text }) => findFillInPlaces(text).map((place) => ({ file, ...place })))
    if (options.json) printJson(context, { ...described, files, fillIn: places, written })
    else {
      context.stdout.write(
        `${describeTableLines(described)
          .map((line) => escapeControlInLines(`# ${line}`))
          .join('\n')}\n`,
      )
      if (!options.write) context.stdout.write(files.map(({ file, text }) => `\n# --- ${file} ---\n${text}`).join(''))
    }
    for (const warning of described.warnings) context.stderr.write(`${escapeControlInLines(`warning: ${warning}`)}\n`)
    for (const { file, line, what } of places)
      context.stderr.write(`${escapeControlInLines(`to fill in: ${file}:${line} ${what}`)}\n`)
    if (present.length > 0) {
      context.stderr.write(
        `outboxd: nothing was written, because of existing files: ${present.map(({ file }) => file).join(', ')}. Move them away, or run without --write and copy by hand\n`,
      )
      return exitCodes.failed
    }
    context.stderr.write(`${nextStep(written, places.length)}\n`)
    return exitCodes.done
  },
})

function asRefusal(error: unknown): DescribeRefused {
  if (error instanceof DescribeRefused) return error
  throw error
}

function describeTableLines({ table, related: { above, below } }: DescribedTable): string[] {
  const rows = table.columns.find(({ sample }) => sample !== null)?.sample?.rows
  const width = Math.max(...table.columns.map(({ name }) => name.length))
  const columns = table.columns.map((column) => {
    const { name, notNull, sample } = column
    const facts = [describeColumn(column)]
    if (table.primaryKey.includes(name)) facts.push('primary key')
    else if (notNull) facts.push('not null')
    if (sample !== null && sample.filled > 0)
      facts.push(`${sample.different} different, ${sample.rows - sample.filled} NULL`)
    return `  ${name.padEnd(width)}  ${facts.join(', ')}`
  })
  return [
    `${table.schema}.${table.name}: ${rows === undefined ? 'no row was read' : `${pluralize(rows, 'row')} read`}`,
    ...columns,
    ...above.map(
      ({ sql, columns, ownColumns }) => `refers to ${sql}: (${ownColumns.join(', ')}) = (${columns.join(', ')})`,
    ),
    ...below.map(describeReferring),
  ]
}

function describeReferring({ sql, columns, ownColumns, isGuess }: RelatedTable): string {
  const match = `(${columns.join(', ')}) = (${ownColumns.join(', ')})`
  if (!isGuess) return `${sql} refers to it: ${match}`
  return `a guess by names: ${sql} ${columns.length === 0 ? 'has a similar name' : `may refer to it: ${match}`}`
}

/** Judges a missing folder by its nearest existing parent. */
function isInPackage(dir: string): boolean {
  if (!existsSync(dir) && dir !== path.dirname(dir)) return isInPackage(path.dirname(dir))
  const real = realpathSync(dir)
  return real === exampleMappingsDir || real.split(path.sep).includes('node_modules')
}

function writeFiles(dir: string, files: readonly { file: string; text: string }[]): string[] {
  mkdirSync(dir, { recursive: true })
  for (const { file, text } of files) writeFileSync(file, text, { flag: 'wx' })
  return files.map(({ file }) => file)
}

function nextStep(written: readonly string[], places: number): string {
  const did =
    written.length === 0 ? 'Nothing was written. Next: add --write, then ' : `Written: ${written.join(', ')}. Next: `
  const fill = places === 0 ? '' : `fill in ${pluralize(places, 'place')} (FILL IN), then `
  const capture = written.find((file) => file.endsWith('.sql'))
  const run = capture === undefined ? '' : `run ${capture} (it says how), then `
  return `${did}${fill}${run}outboxd check, and outboxd map --all-new.`
}
