import type { Exchange } from '../exchange.ts'
import { type Finding, sure } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample, firstExchangeSample } from '../samples/firstCall.ts'

export const redirects: Question = {
  name: 'redirects',
  section: '4',
  asks: 'whether any answer sends elsewhere',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstExchangeSample],
  needs: [],
  harmless: true,
  async run(parts) {
    const finding = judgeRedirects(parts.exchanges())
    if (!finding.differs) await parts.sample(firstCallSample) // that there is none, only the service can tell
    return finding
  },
}

/** Pure. */
export function judgeRedirects(exchanges: readonly Exchange[]): Finding {
  const assumed = 'none: they are never followed'
  const sent = exchanges.find(({ answer }) => answer.kind === 'response' && answer.status >= 300 && answer.status < 400)
  if (sent?.answer.kind !== 'response') return sure('none', `${exchanges.length} answers`, { assumed })
  const to = sent.answer.headers.location?.replace(/[?#].*$/s, '') ?? '(nowhere)'
  return sure(String(sent.answer.status), `${sent.method} ${sent.path} is sent to ${to}`, {
    assumed,
    differs: true,
    cannot: 'everybody pauses (unauthorized) at a redirect: look at SERVICE_BASE_URL, or at a proxy in between',
  })
}
