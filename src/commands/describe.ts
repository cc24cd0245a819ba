import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { exampleMappingsDir, readDatabaseConfig, readDirForNewMappings } from '../config.ts'
import { loadMappingsOrEmptyIfBroken } from '../mapping/loadMappings.ts'
import { parseTableName, proposeFilesForTable } from '../outbox/propose/proposeFilesForTable.ts'
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
    ['--endpoint <name>', `where the records go: ${resourceNames.join(' or ')} (default: chosen by fields and lines)`],
    ['--write', 'write the files into MAPPINGS_DIR, unless one of them exists'],
    ['--json', 'print JSON'],
  ],
  help: `Reads the catalog of DATABASE_URL, values of text columns, and the field names of some payloads. It changes nothing.
For a header with lines it follows foreign keys to the lines, the customer and the articles. It proposes a query that reads
them, and the SQL that makes change capture watch them. What only you can know is marked FILL IN, with
the choices. The files load only after you filled that in.
If something would keep the daemon from reading the table, a warning on stderr says so.

Examples:
  outboxd describe sales_order             look first
  outboxd describe sales_order --write     then fill in, and outboxd check`,
  /** @returns 3 if the user sees no such table, 1 if outboxd cannot read it or `--write` meets an existing file */
  async action(context, table, options): Promise<number> {
    const { databaseUrl: url } = readDatabaseConfig(context.env)
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
    const mapped = loadMappingsOrEmptyIfBroken(mappingsDir)
    const described = await inspectDatabase({
      of: 'outbox',
      url,
      read: (pool) => proposeFilesForTable(pool, name, mapped, endpoint),
    })
    if (described.kind === 'denied') {
      if (options.json) printJson(context, { table: null, denied: described.problem })
      context.stderr.write(`outboxd: ${described.problem}\n`)
      return exitCodes.failed
    }
    if (described.kind === 'missing') {
      const { schema, table } = name
      const hint = described.nearest === null ? '' : `; did you mean "${described.nearest}"?`
      if (options.json) printJson(context, { table: null, nearest: described.nearest })
      context.stderr.write(
        `outboxd: there is no table ${schema === null ? '' : `${schema}.`}${table} in the outbox's database, or this user has no permission to see it${hint}\n`,
      )
      return exitCodes.nothing
    }
    const files = described.files.map(({ name, text }) => ({ file: path.join(mappingsDir, name), text }))
    const present = options.write ? files.filter(({ file }) => existsSync(file)) : []
    const written = options.write && present.length === 0 ? writeFiles(mappingsDir, files) : []
    const places = files.flatMap(({ file, text }) => findFillInPlaces(text).map((place) => ({ file, ...place })))
    if (options.json)
      printJson(context, { table: described.table, files, fillIn: places, warnings: described.warnings, written })
    else if (!options.write)
      context.stdout.write(files.map(({ file, text }) => `# --- ${file} ---\n${text}`).join('\n'))
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
