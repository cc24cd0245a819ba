import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { readDatabaseConfig, readMappingsDirOrExamples, readPayloadMaxBytes } from '../config.ts'
import { loadMappings, type Mappings } from '../mapping/loadMappings.ts'
import { withOutbox } from '../operations/databases.ts'
import { parseLimitOption } from '../operations/filters.ts'
import {
  chooseRecordType,
  decodePayloadFile,
  exampleSubmissionId,
  findPreviewWarningLines,
  type MapPreview,
  mapPayloads,
  previewRowMapping,
} from '../operations/mapRecords.ts'
import { readContentsInBatches, readRecordWithContent } from '../outbox/readRecordContents.ts'
import { readWaitingRows } from '../outbox/readRows.ts'
import { escapeControlInLines, pluralize, renderTable, truncateToOneLine } from '../plainText.ts'
import { serviceResources } from '../resources.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { openDatabasesOf } from './terminal/operator.ts'

const limitDefault = 1_000

export const command = defineCommand({
  onlyLooks: true,
  description: "show a record's request or errors, and send nothing",
  arguments: [['[file]', 'a file with a JSON payload, or with one per line; - reads standard input']],
  options: [
    ['--type <type>', "the records' type (default: that of the only mapping file)"],
    ['--outbox <id>', 'the row of that id in the outbox table'],
    ['--all-new', 'every waiting row: a summary by error'],
    ['--limit <number>', `with --all-new: map at most this many (default: ${limitDefault})`],
    ['--json', 'print JSON'],
  ],
  help: `A file needs neither a database nor the service, only MAPPINGS_DIR and PAYLOAD_MAX_BYTES. \${submission.id} is shown as ${exampleSubmissionId}.
The exit code is 1 if a record cannot be mapped. A warning names what can be mapped but the service may refuse.

Examples:
  outboxd map payload.json --type order
  outboxd map --outbox 4711
  outboxd map --all-new            before the first start: would they all map?
  jq -c '.[]' export.json | outboxd map - --type data`,
  /** @returns exit code 1 if a record cannot be mapped, 3 if there is no record */
  async action(context, file, options): Promise<number> {
    const problems: string[] = []
    const sources = [file, options.outbox, options.allNew].filter((source) => source !== undefined)
    if (sources.length !== 1) problems.push('give exactly one of a file, - (standard input), --outbox ID and --all-new')
    if (options.type !== undefined && file === undefined)
      problems.push('--type is for files: an outbox row has a type of its own')
    if (options.limit !== undefined && !options.allNew) problems.push('--limit goes with --all-new')
    const limit = parseLimitOption(options.limit, problems) ?? limitDefault
    if (problems.length > 0) return printUsageErrors(context, problems)

    const mappings = loadMappings(readMappingsDirOrExamples(context.env)) // no other variable need be set to try a file
    let previews: MapPreview[]
    if (file === undefined) previews = await previewRows(context, mappings, options.outbox ?? null, limit)
    else {
      const chosen = chooseRecordType(mappings, options.type)
      if (chosen.kind === 'invalid') return printUsageErrors(context, [chosen.problem])
      const bytesMax = readPayloadMaxBytes(context.env)
      try {
        const content = decodePayloadFile(file === '-' ? await buffer(context.stdin) : await readFile(file))
        previews = mapPayloads(mappings, chosen.type, content, bytesMax)
      } catch (error) {
        return printUsageErrors(context, [`${file} cannot be read: ${(error as Error).message}`])
      }
    }
    if (previews.length === 0) {
      const where = file ?? (options.allNew ? 'the waiting rows of the outbox' : `row ${options.outbox} of the outbox`)
      context.stderr.write(`outboxd: there is nothing in ${escapeControlInLines(where)}\n`)
      return exitCodes.nothing
    }
    if (options.allNew && previews.length === limit)
      context.stderr.write(`Only the first ${limit} rows were mapped. --limit maps more.\n`)
    for (const warning of findPreviewWarningLines(mappings, previews))
      context.stderr.write(`${escapeControlInLines(warning)}\n`)
    return options.allNew ? summarise(context, previews, options) : printEach(context, previews, options)
  },
})

type MapOptions = OptionsOf<typeof command>

/** @param id null maps all waiting rows */
async function previewRows(
  context: CommandContext,
  mappings: Mappings,
  id: string | null,
  limit: number,
): Promise<MapPreview[]> {
  await using databases = await openDatabasesOf(readDatabaseConfig(context.env))
  return await withOutbox(databases, async (outbox) => {
    const records =
      id === null
        ? await readContentsInBatches(outbox, mappings, await readWaitingRows(outbox, limit))
        : [await readRecordWithContent(outbox, mappings, id)]
    return records.filter((record) => record !== null).map((record) => previewRowMapping(mappings, record))
  })
}

function printEach(context: CommandContext, previews: readonly MapPreview[], options: MapOptions): number {
  const bad = previews.filter(({ kind }) => kind === 'refused').length
  if (options.json)
    printJson(context, previews.length === 1 && previews[0] ? jsonOf(previews[0]) : previews.map(jsonOf))
  else context.stdout.write(escapeControlInLines(previews.map(describe).join('\n')))
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
    truncateToOneLine(source ?? (from === null ? '-' : '(missing)'), 60),
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

/** Counts errors of one field and kind as one, whatever the values. */
function summarise(context: CommandContext, previews: readonly MapPreview[], { json }: MapOptions): number {
  const errors = previews.flatMap((each) =>
    each.kind === 'refused' ? each.errors.map((error) => ({ type: each.type, ...error, example: each.name })) : [],
  )
  const groups = Map.groupBy(errors, ({ type, field, kind }) => `${type} ${field} ${kind}`)
  const rows = [...groups.values()]
    .flatMap((group) => group.slice(0, 1).map((first) => ({ count: group.length, ...first })))
    .sort((a, b) => b.count - a.count)
  const maps = previews.filter(({ kind }) => kind === 'mapped').length
  if (json) printJson(context, { records: previews.length, maps, errors: rows })
  else {
    context.stdout.write(
      `${maps} of ${pluralize(previews.length, 'record')} ${previews.length === 1 ? 'maps' : 'map'}.\n`,
    )
    const cells = rows.map(({ count, type, field, from, example, message }) => [
      ...[String(count), truncateToOneLine(type, 24), field, from || '-', example, message],
    ])
    if (rows.length > 0)
      context.stdout.write(`\n${renderTable(['COUNT', 'TYPE', 'FIELD', 'FROM', 'EXAMPLE', 'ERROR'], cells)}`)
  }
  return maps < previews.length ? exitCodes.failed : exitCodes.done
}
