import { sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { connectionSample } from '../samples/connection.ts'

export const tls: Question = {
  name: 'tls',
  section: '1',
  asks: 'the version of TLS, and until when its certificate is valid',
  requestsMax: 0,
  recordsMax: 0,
  samples: [connectionSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const seen = await parts.sample(connectionSample)
    if (seen.kind === 'failed') return unknown(seen.why)
    if (seen.tls === null) return sure('none', 'SERVICE_BASE_URL is http on loopback')
    const { protocol, certificateUntilMs } = seen.tls
    if (certificateUntilMs === null) return sure(protocol, 'its certificate does not say until when it is valid')
    const days = Math.floor((certificateUntilMs - parts.nowMs()) / 86_400_000)
    const until = new Date(certificateUntilMs).toISOString().slice(0, 10)
    const advice = days < 30 ? [`the certificate of the service ends in ${days} days: tell its operator`] : []
    return sure(`${protocol}, until ${until}`, `its certificate is valid for ${days} days more`, { advice })
  },
}
