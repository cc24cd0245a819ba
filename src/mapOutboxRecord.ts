import type { Mapped } from './capture/capture.ts'
import type { Mappings } from './map/loadMappings.ts'
import { mapRecord } from './map/mapRecord.ts'
import type { OutboxRecord } from './record.ts'

/** Maps an outbox row by the mapping of its type; refuses it, in words, where that cannot be done. */
export function mapOutboxRecord(mappings: Mappings, record: OutboxRecord, submissionId: string): Mapped {
  const mapping = mappings.get(record.type)
  if (!mapping) {
    const known = [...mappings.keys()].sort().join(', ')
    return {
      kind: 'refused',
      resource: null,
      reason: `no mapping file for the type "${record.type}" (there are: ${known})`,
    }
  }
  const resource = mapping.endpoint
  if (record.payload === null) {
    return { kind: 'refused', resource, reason: record.unreadable ?? 'the payload is missing' }
  }
  const mapped = mapRecord(mapping, record.payload, submissionId)
  if (mapped.kind === 'mapped') {
    const { track: tracked, sendsSubmissionId: sendsOwnId } = mapping
    return { kind: 'mapped', resource, tracked, sendsOwnId, body: mapped.body }
  }
  const reason = mapped.errors.map(({ field, from, message }) => `${field}${from ? ` (from ${from})` : ''} ${message}`)
  return { kind: 'refused', resource, reason: reason.join('; ') }
}
