import type { DatabaseConfig } from '../../config.ts'
import { firstKeyOfPath } from '../../mapping/compilePath.ts'
import { findBodyWarnings } from '../../mapping/findBodyWarnings.ts'
import { loadMappings, type Mappings } from '../../mapping/loadMappings.ts'
import type { Field, Mapping } from '../../mapping/mapping.ts'
import type { OutboxRecord } from '../../model/outbox.ts'
import { previewRowMapping } from '../../operations/mapRecords.ts'
import type { OutboxTable } from '../../outbox/outboxTable.ts'
import { loadOutboxFile } from '../../outbox/readOutboxFile.ts'
import { pluralize, quoteForShell } from '../../plainText.ts'
import { didYouMeanHint } from '../../yaml/nearestWord.ts'
import { FilesInvalid } from '../../yaml/yamlDocument.ts'
import { type Finding, makeFinding } from './finding.ts'

export function checkMappings({ mappingsDir }: DatabaseConfig): Finding[] {
  const mappings = [...loadMappings(mappingsDir).values()]
  const table = tryLoadOutboxFile(mappingsDir)
  const names = mappings.map(({ type, endpoint }) => `${type} to ${endpoint}`)
  return [
    makeFinding('mappings', 'ok', `${names.sort().join(', ')} (${mappingsDir})`),
    ...mappings.flatMap((mapping) => judgeMapping(mapping, table)),
  ]
}

/** The finding `outbox` reports a broken file. */
function tryLoadOutboxFile(dir: string): OutboxTable | null {
  try {
    return loadOutboxFile(dir)
  } catch (error) {
    if (error instanceof FilesInvalid) return null
    throw error
  }
}

function judgeMapping(mapping: Mapping, table: OutboxTable | null): Finding[] {
  const type = table?.type.kind === 'constant' ? table.type.type : mapping.type
  const excluded =
    type === mapping.type ? [] : [`no row has this type, because outbox.yaml gives each row the type "${type}"`]
  const columns = excluded.length > 0 || mapping.source !== null ? null : payloadColumns(table)
  const unknown = columns === null ? [] : mapping.fields.filter((field) => readsNoColumn(field, columns))
  const [fatal, harmless] = [unknown.filter(isNeeded), unknown.filter((field) => !isNeeded(field))]
  const lines = [
    ...fatal.map((field) => `${missingColumnClause(field, columns)}, so each record will be rejected`),
    ...harmless.map((field) => `${missingColumnClause(field, columns)}, so the value is always missing`),
    ...excluded,
    ...findBodyWarnings(mapping),
  ]
  if (lines.length === 0) return []
  return [makeFinding(`mapping of ${mapping.type}`, fatal.length > 0 ? 'problem' : 'warning', ...lines)]
}

/** Null if the names are unknown, as for a captured document. */
function payloadColumns(table: OutboxTable | null): ReadonlySet<string> | null {
  if (table?.payload.kind !== 'columns' || table.payload.columns === null) return null
  const names = new Set(table.payload.columns.keys())
  return names.has('document') ? null : names
}

function readsNoColumn({ from }: Field, columns: ReadonlySet<string>): boolean {
  const key = from === null ? null : firstKeyOfPath(from)
  return key !== null && !columns.has(key)
}

const isNeeded = ({ required, constantOrDefault }: Field) => required && constantOrDefault === null

function missingColumnClause({ name, from }: Field, columns: ReadonlySet<string> | null): string {
  const names = [...(columns ?? [])]
  return `${name} reads ${from}, but the payload of outbox.yaml has only ${names.join(', ')}${didYouMeanHint(from ?? '', names)}`
}

export function judgeWaitingRecords(
  mappings: Mappings,
  { records, isCut }: { records: readonly OutboxRecord[]; isCut: boolean },
): Finding[] {
  const sent = records.filter(({ type, noRecord }) => mappings.has(type) && (noRecord ?? null) === null)
  if (sent.length === 0) return []
  const refused = sent.filter((record) => previewRowMapping(mappings, record).kind === 'refused')
  const which = `${isCut ? 'the first ' : ''}${pluralize(sent.length, 'waiting row')}`
  const summary = `${sent.length - refused.length} of ${which} ${sent.length === 1 ? 'maps' : 'map'}`
  const [first] = refused
  if (first === undefined) return [makeFinding('rows', 'ok', summary)]
  const why = `\`outboxd map --outbox ${quoteForShell(first.outboxId)}\` says why row ${first.outboxId} will be rejected`
  return [makeFinding('rows', refused.length === sent.length ? 'problem' : 'warning', `${summary}. ${why}`)]
}
