import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readMappingsDirOrExamples } from '../config.ts'
import type { RequestBody } from '../discover/question.ts'
import { loadMappings } from '../mapping/loadMappings.ts'
import { mapOutboxRecord } from '../mapping/mapRecord.ts'
import { chooseRecordType, decodePayloadFile } from '../operations/mapRecords.ts'
import { type Resource, serviceResources } from '../resources.ts'
import { isObject, type PayloadObject, readPayload, writeJson } from '../yaml/exactJson.ts'
import type { CommandContext } from './terminal/context.ts'

/** From the file of `discover --record`. */
export type TestRecord =
  | { kind: 'record'; resource: Resource; body: RequestBody }
  | { kind: 'invalid'; problem: string }

/**
 * Reads a body, or a payload that the mapping file of `type` maps. A body is recognised by its fields
 * (docs/reference/interface.md, 2.2 and 2.6).
 */
export function readTestRecord({ env }: CommandContext, file: string, type: string | undefined): TestRecord {
  const invalid = (problem: string) => ({ kind: 'invalid' as const, problem: `--record ${file}: ${problem}` })
  let text: string
  try {
    text = decodePayloadFile(readFileSync(file))
  } catch (error) {
    return invalid(`cannot be read: ${(error as Error).message}`)
  }
  const read = readPayload(text)
  if (read.kind === 'invalid') return invalid(read.message)
  const own = type === undefined ? resourceOf(read.payload) : null
  if (own !== null) return { kind: 'record', resource: own, body: read.payload }
  const mappings = loadMappings(readMappingsDirOrExamples(env))
  const chosen = chooseRecordType(mappings, type)
  if (chosen.kind === 'invalid') return invalid(chosen.problem)
  const mapped = mapOutboxRecord(
    mappings,
    { type: chosen.type, payload: writeJson(read.payload), unreadable: null },
    randomUUID(),
  )
  if (mapped.kind === 'refused') return invalid(`its payload cannot be mapped: ${mapped.reason}`)
  const body = readPayload(mapped.body)
  if (body.kind === 'invalid') return invalid(`its mapped body ${body.message}`)
  return { kind: 'record', resource: mapped.resource, body: body.payload }
}

function resourceOf(payload: PayloadObject): Resource | null {
  const has = (name: string, kind: string) => {
    if (kind === 'object') return isObject(payload[name] ?? null)
    if (kind === 'array') return Array.isArray(payload[name])
    return name in payload
  }
  const names = Object.keys(serviceResources) as Resource[]
  return (
    names.find((name) => Object.entries(serviceResources[name].body).every(([field, { kind }]) => has(field, kind))) ??
    null
  )
}
