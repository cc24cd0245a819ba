import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { readMappingsDir } from '../config.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { withOutbox } from '../operations/databases.ts'
import { parseLimitOption } from '../operations/filters.ts'
import {
  chooseRecordType,
  exampleSubmissionId,
  type MapPreview,
  mapPayloads,
  previewRowMapping,
  previewWarnings,
} from '../operations/mapRecords.ts'
import { readContentsDespiteFailures, readRecordWithContent } from '../outbox/readRecordContents.ts'
import { readWaitingRows } from '../outbox/readRows.ts'
import { escapeLines, pluralize, renderTable, truncate } from '../plainText.ts'
import { serviceResources } from '../resources.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, usageError } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'

const limitDefault = 1_000

export const command = defineCommand({
  onlyLooks: true,
  description: "show a record's request or errors, and send nothing",
  arguments: [['[file]', 'a JSON payload, or one a line; - reads standard input']],
  options: [
    ['--type <type>', "the records' type (default: that of the only mapping file)"],
    ['--outbox <id>', 'the row of that id in the outbox table'],
    ['--all-new', 'every waiting row: a summary by error'],
    ['--limit <number>', `with --all-new: map at most this many (default: ${limitDefault})`],
    ['--json', 'print JSON'],
  ],
  help: `A file needs neither a database nor the service, only MAPPINGS_DIR. \${submission.id} is shown as ${exampleSubmissionId}.
The exit code is 1 if a record does not map. What the service may refuse though it maps is a warning.

Examples:
  outboxd map payload.json --type order
  outboxd map --outbox 4711
  outboxd map --all-new            before the first start: would they all map?
  jq -c '.[]' export.json | outboxd map - --type data`,
  /** @returns 1 if a record does not map, 3 without a record */
  async action(context, file, options): Promise<number> {
    const problems: string[] = []
    const sources = [file, options.outbox, options.allNew].filter((source) => source !== undefined)
    if (sources.length !== 1) problems.push('give exactly one of a file, - (standard input), --outbox ID and --all-new')
    if (options.type !== undefined && file === undefined)
      problems.push('--type is for files: an outbox row has a type of its own')
    if (options.limit !== undefined && !options.allNew) problems.push('--limit goes with --all-new')
    const limit = parseLimitOption(options.limit, problems) ?? limitDefault
    if (problems.length > 0) return usageError(context, problems)

    const mappings = loadMappings(readMappingsDir(context.env)) // no other variable need be set to try a file
    if (file !== undefined) return mapFile(context, mappings, file, options)
    return withDatabases(context, async (databases) => {
      if (options.allNew) {
        const records = await withOutbox(databases, async (outbox) =>
          readContentsDespiteFailures(outbox, mappings, await readWaitingRows(outbox, limit)),
        )
        if (records.length === 0) return nothing(context, 'no row waits in the outbox')
        if (records.length === limit)
          context.stderr.write(`Only the first ${limit} rows were mapped. --limit maps more.\n`)
        const previews = records.map((record) => previewRowMapping(mappings, record))
        warnOfBodies(context, mappings, previews)
        return summarise(context, previews, options)
      }
      const record = await withOutbox(databases, (erp) => readRecordWithContent(erp, mappings, options.outbox ?? ''))
      if (record === null) return nothing(context, `there is no row ${options.outbox} in the outbox`)
      const previews = [previewRowMapping(mappings, record)]
      warnOfBodies(context, mappings, previews)
      return printEach(context, previews, options)
    })
  },
})

type MapOptions = OptionsOf<typeof command>

async function mapFile(
  context: CommandContext,
  mappings: Mappings,
  file: string,
  options: MapOptions,
): Promise<number> {
  const chosen = chooseRecordType(mappings, options.type)
  if (chosen.kind === 'invalid') return usageError(context, [chosen.problem])
  let content: string
  try {
    content = file === '-' ? await text(context.stdin) : await readFile(file, 'utf8')
  } catch (error) {
    return usageError(context, [`${file} cannot be read: ${(error as Error).message}`])
  }
  const previews = mapPayloads(mappings, chosen.type, content)
  if (previews.length === 0) return nothing(context, `there is no payload in ${file === '-' ? 'standard input' : file}`)
  warnOfBodies(context, mappings, previews)
  return printEach(context, previews, options)
}

/** Prints what the service may refuse although it maps, and dates that change in UTC. */
function warnOfBodies(context: CommandContext, mappings: Mappings, previews: readonly MapPreview[]): void {
  for (const warning of previewWarnings(mappings, previews)) context.stderr.write(`${escapeLines(warning)}\n`)
}

function nothing(context: CommandContext, message: string): number {
  context.stderr.write(`outboxd: ${escapeLines(message)}\n`)
  return exitCodes.nothing
}

function printEach(context: CommandContext, previews: readonly MapPreview[], options: MapOptions): number {
  const bad = previews.filter(({ kind }) => kind === 'refused').length
  if (options.json)
    printJson(context, previews.length === 1 && previews[0] ? jsonOf(previews[0]) : previews.map(jsonOf))
  else context.stdout.write(escapeLines(previews.map(describe).join('\n')))
  if (previews.length > 1) context.stderr.write(`${previews.length - bad} of ${previews.length} records map.\n`)
  return bad > 0 ? exitCodes.failed : exitCodes.done
}

function describe(preview: MapPreview): string {
  if (preview.kind === 'refused') {
    const errors = preview.errors.map(({ field, from, message }) => [`  ${field}`, from || '-', message])
    return `${preview.name} of type ${preview.type} cannot be sent:\n${renderTable(['  FIELD', 'FROM', 'ERROR'], errors)}`
  }
  const rows = preview.fields.map(({ field, from, source, value }) => [
    `  ${field}`,
    from ?? '(constant)',
    truncate(source ?? (from === null ? '-' : '(missing)'), 60),
    value ?? '(left out)',
  ])
  return [
    `${preview.name} of type ${preview.type} becomes POST ${serviceResources[preview.resource].path}\n`,
    renderTable(['  FIELD', 'FROM', 'ERP', 'SENT'], rows),
    `\n${preview.body}\n`,
  ].join('')
}

function jsonOf(preview: MapPreview) {
  const { name, type } = preview
  if (preview.kind === 'refused')
    return { record: name, type, maps: false, reason: preview.reason, errors: preview.errors }
  return {
    record: name,
    type,
    maps: true,
    path: serviceResources[preview.resource].path,
    body: preview.body,
    fields: preview.fields,
  }
}

/** Groups errors that differ only in the record's value. */
function summarise(context: CommandContext, previews: readonly MapPreview[], options: MapOptions): number {
  const errors = previews.flatMap((each) =>
    each.kind === 'refused'
      ? each.errors.map(({ field, from, message }) => ({ record: each.name, type: each.type, field, from, message }))
      : [],
  )
  const groups = Object.values(
    Object.groupBy(errors, ({ type, field, message }) => `${type} ${field} ${message.replace(/"[^"]*"/g, '"…"')}`),
  )
  const rows = groups
    .flatMap((group) => (group?.[0] ? [{ count: group.length, ...group[0] }] : []))
    .sort((a, b) => b.count - a.count)
  const bad = previews.filter(({ kind }) => kind === 'refused').length
  if (options.json)
    printJson(context, {
      records: previews.length,
      maps: previews.length - bad,
      errors: rows.map(({ record, ...row }) => ({ ...row, example: record })),
    })
  else {
    context.stdout.write(`${previews.length - bad} of ${pluralize(previews.length, 'record')} map.\n`)
    if (rows.length > 0)
      context.stdout.write(
        `\n${renderTable(
          ['COUNT', 'TYPE', 'FIELD', 'FROM', 'EXAMPLE', 'ERROR'],
          rows.map(({ count, type, field, from, record, message }) => [
            String(count),
            truncate(type, 24),
            field,
            from || '-',
            record,
            message,
          ]),
        )}`,
      )
  }
  return bad > 0 ? exitCodes.failed : exitCodes.done
}
