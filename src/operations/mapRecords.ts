import { isUtf8 } from 'node:buffer'
import { findBodyWarnings } from '../mapping/findBodyWarnings.ts'
import type { Mappings } from '../mapping/loadMappings.ts'
import { type MappedOrRefusedRecord, mapOutboxRecord } from '../mapping/mapRecord.ts'
import type { OutboxRecord } from '../model/outbox.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { readRecordContentsThatFit } from '../outbox/readRecordContents.ts'
import { decodePayload, readFirstWaitingRowsThatFit } from '../outbox/readRows.ts'
import { readPayload } from '../yaml/exactJson.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'

export const exampleSubmissionId = '00000000-0000-7000-8000-000000000000'

export type MapPreview = { name: string; type: string } & MappedOrRefusedRecord

/** Returns the given type, or the type of the only mapping file. */
export function chooseRecordType(
  mappings: Mappings,
  given: string | undefined,
): { kind: 'value'; type: string } | { kind: 'invalid'; problem: string } {
  const types = [...mappings.keys()].sort()
  const type = given ?? (types.length === 1 ? types[0] : undefined)
  if (type === undefined) return { kind: 'invalid', problem: `--type is missing: give one of ${types.join(', ')}` }
  if (mappings.has(type)) return { kind: 'value', type }
  return {
    kind: 'invalid',
    problem: `--type ${type}: there is no mapping file for it${didYouMeanHint(type, types)} (types: ${types.join(', ')})`,
  }
}

/** Keeps a byte order mark, as a text column does. */
export function decodePayloadFile(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8 text')
  return bytes.toString()
}

export function mapPayloads(mappings: Mappings, type: string, content: string, bytesMax: number): MapPreview[] {
  return splitPayloads(content).map(({ name, payload: raw }) => {
    const read = decodePayload({ raw, bytes: Buffer.byteLength(raw) }, 'utf-8', bytesMax)
    return { name, type, ...mapOutboxRecord(mappings, { type, ...read }, exampleSubmissionId) }
  })
}

/** Returns one payload, or one per line if each line begins like a JSON object and the first is whole. */
export function splitPayloads(content: string): { name: string; payload: string }[] {
  const lines = content
    .split(/\r?\n/)
    .map((payload, i) => ({ name: `line ${i + 1}`, payload }))
    .filter(({ payload }) => payload.trim() !== '')
  if (lines.length === 0) return []
  const isMany =
    lines.length > 1 &&
    lines[0]?.payload.trim().endsWith('}') &&
    lines.every(({ payload }) => payload.trim().startsWith('{')) &&
    readPayload(content).kind === 'invalid'
  return isMany ? lines : [{ name: 'the payload', payload: content.replace(/\r?\n$/, '') }]
}

export async function readFirstWaitingRecordsThatFit(
  outbox: Outbox,
  mappings: Mappings,
  limit: number,
): Promise<{ records: OutboxRecord[]; isCut: boolean }> {
  const { rows, isCut } = await readFirstWaitingRowsThatFit(outbox, limit)
  const records = await readRecordContentsThatFit(outbox, mappings, rows)
  return { records, isCut: isCut || records.length < rows.length }
}

export function previewRowMapping(mappings: Mappings, record: OutboxRecord): MapPreview {
  return {
    name: `outbox:${record.outboxId}`,
    type: record.type,
    ...mapOutboxRecord(mappings, record, exampleSubmissionId),
  }
}

export const findPreviewWarningLines = (mappings: Mappings, previews: readonly MapPreview[]): string[] =>
  [...new Set(previews.map(({ type }) => type))].flatMap((type) => {
    const mapping = mappings.get(type)
    const warnings = mapping === undefined ? [] : findBodyWarnings(mapping)
    return warnings.map((warning) => `warning: mapping of ${type}: ${warning}`)
  })
