import { sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { acceptedRecord, submissionSample } from '../samples/submission.ts'

export const transactionId: Question = {
  name: 'transaction-id',
  section: '2.3',
  asks: 'what the service’s ids look like',
  requestsMax: 0,
  recordsMax: 0,
  samples: [submissionSample],
  needs: ['customer'],
  harmless: false,
  async run(parts) {
    const { id } = await acceptedRecord(parts)
    return sure(formOf(id), `such as ${id}`, { assumed: 'any text of up to 255 characters' })
  },
}

/** Pure. */
export function formOf(id: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(id)) return 'uuid'
  if (/^\d+$/.test(id)) return 'digits'
  return /^[\w.~-]+$/.test(id) ? 'word' : 'characters that a path must encode'
}
