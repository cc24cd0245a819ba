import { sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { connectionSample } from '../samples/connection.ts'

export const httpVersion: Question = {
  name: 'http-version',
  section: '1',
  asks: 'the version of HTTP in which it answers',
  requestsMax: 0,
  recordsMax: 0,
  samples: [connectionSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const seen = await parts.sample(connectionSample)
    const assumed = '1.1'
    if (seen.kind === 'failed') return unknown(seen.why, { assumed })
    return sure(seen.httpVersion, 'the daemon speaks 1.1 alone', { assumed, differs: seen.httpVersion !== '1.1' })
  },
}
