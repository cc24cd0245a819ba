import { findBodyWarnings } from '../mapping/findBodyWarnings.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { type MappedRecord, mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { OutboxRecord } from '../model.ts'
import { readPayload } from '../yaml/exactJson.ts'
import { didYouMean } from '../yaml/nearestWord.ts'

/** Stands for the submission's id, which a record gets when it is captured. */
export const exampleId = '00000000-0000-7000-8000-000000000000'

/** What the daemon would make of a record, and how people know it. */
export type MapPreview = { name: string; type: string } & MappedRecord

/** The type that payloads without a row are of: the given one, or that of the only mapping file. Pure. */
export function chooseType(
  mappings: Mappings,
  given: string | undefined,
): { kind: 'value'; type: string } | { kind: 'invalid'; problem: string } {
  const types = [...mappings.keys()].sort()
  const type = given ?? (types.length === 1 ? types[0] : undefined)
  if (type === undefined)
    return { kind: 'invalid', problem: `--type must say which mapping to use: ${types.join(', ')}` }
  if (mappings.has(type)) return { kind: 'value', type }
  return {
    kind: 'invalid',
    problem: `--type ${type}: there is no mapping file for it${didYouMean(type, types)} (there are: ${types.join(', ')})`,
  }
}

/** What payloads of a type would become: one, or one a line. Pure. */
export function mapPayloads(mappings: Mappings, type: string, content: string): MapPreview[] {
  return payloadsIn(content.replace(/^\uFEFF/, '')).map(({ name, payload }) => ({
    name,
    type,
    ...mapOutboxRecord(mappings, { type, payload, unreadable: null }, exampleId),
  }))
}

/** One payload, or one a line where every line looks like an object of its own. Pure. */
export function payloadsIn(content: string): { name: string; payload: string }[] {
  const lines = content
    .split('\n')
    .map((line, i) => ({ name: `line ${i + 1}`, payload: line.trim() }))
    .filter(({ payload }) => payload !== '')
  if (lines.length === 0) return []
  const isMany = lines.length > 1 && readPayload(content).kind === 'invalid' && lines.every(looksWhole)
  return isMany ? lines : [{ name: 'the payload', payload: content.trim() }]
}

const looksWhole = ({ payload }: { payload: string }) => payload.startsWith('{') && payload.endsWith('}')

/** What a row would become, by the daemon's own mapper: a preview that may differ is none. Pure. */
export function mapRow(mappings: Mappings, record: OutboxRecord): MapPreview {
  return { name: `outbox:${record.outboxId}`, type: record.type, ...mapOutboxRecord(mappings, record, exampleId) }
}

/** What the service may refuse of these although they map. Pure. */
export function bodyWarnings(mappings: Mappings, previews: readonly Pick<MapPreview, 'type'>[]): string[] {
  return [...new Set(previews.map(({ type }) => type))].flatMap((type) => {
    const mapping = mappings.get(type)
    return mapping === undefined
      ? []
      : findBodyWarnings(mapping).map((warning) => `warning: mapping of ${type}: ${warning}`)
  })
}
