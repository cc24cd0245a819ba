import { vi } from 'vitest'
import type { Mapping, MappingResult } from '../../src/mapping/mapping.ts'
import { mapRecord } from '../../src/mapping/mapRecord.ts'
import { readMapping } from '../../src/mapping/readMapping.ts'

/** How many cases a property tries: `LONG=1 npm test -- test/mapping` is the long form. */
export const numRuns = process.env.LONG ? 10_000 : 1_000
if (process.env.LONG) vi.setConfig({ testTimeout: 300_000 })

/** A mapping of one field `v`, sent as `{"v":…}`. */
export function mappingOf(options: string, body = 'v: ${v}'): Mapping {
  return mappingFrom(`type: t\nendpoint: data\nfields:\n  v: { ${options} }\nbody:\n  ${body}\n`)
}

export function mappingFrom(text: string): Mapping {
  const { mapping, problems } = readMapping('test.yaml', text)
  if (mapping === null) throw new Error(problems.map(({ line, message }) => `${line}: ${message}`).join('\n'))
  return mapping
}

/** Maps `{"v": <json>}` with a mapping of one field. */
export function mapValue(mapping: Mapping, json: string): MappingResult {
  return mapRecord(mapping, `{"v":${json}}`, '00000000-0000-4000-8000-000000000000')
}

/** The request's bytes, or the errors, as one line. */
export function outcomeOf(mapped: MappingResult): string {
  return mapped.kind === 'mapped' ? mapped.body : mapped.errors.map((e) => `${e.field} ${e.message}`).join(' | ')
}
