import type { Credentials } from '../config.ts'
import { earliestExpiryMs } from '../pem.ts'
import { showDuration } from '../time.ts'
import type { Finding, Mark } from './finding.ts'

/** When a certificate ends. */
export interface CertificateEnd {
  whose: string
  endsMs: number
}

/** When those of our own files end. */
export function ownCertificates({ cert, ca }: Pick<Credentials, 'cert' | 'ca'>): CertificateEnd[] {
  const ends = [
    { whose: 'our client certificate (SERVICE_CERT_FILE)', endsMs: earliestExpiryMs(cert) },
    { whose: 'the first to end in SERVICE_CA_FILE', endsMs: earliestExpiryMs(ca) },
  ]
  return ends.flatMap(({ whose, endsMs }) => (endsMs === null ? [] : [{ whose, endsMs }]))
}

/** As the alerts OutboxdCertificateExpires and OutboxdCertificateExpiresNow. */
const warnMs = 14 * 86_400_000

/** Whether certificates last; null where there is none. Pure. */
export function judgeCertificates(certificates: readonly CertificateEnd[], nowMs: number): Finding | null {
  const [first] = certificates.toSorted((a, b) => a.endsMs - b.endsMs)
  if (first === undefined) return null
  const leftMs = first.endsMs - nowMs
  const mark: Mark = leftMs <= 0 ? 'problem' : leftMs < warnMs ? 'warning' : 'ok'
  const lines = certificates.map(({ whose, endsMs }) => {
    const day = new Date(endsMs).toISOString().slice(0, 10)
    return endsMs <= nowMs ? `${whose} ended on ${day}` : `${whose} ends on ${day}, in ${showDuration(endsMs - nowMs)}`
  })
  const next = mark === 'ok' ? [] : ['Renew it: docs/runbook.md, OutboxdCertificateExpires']
  return { what: 'certificates', mark, message: [...lines, ...next].join('\n') }
}
