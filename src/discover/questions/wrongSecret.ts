import type { Seen } from '../exchange.ts'
import { lineOf, nameOf, whyNoAnswer } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { tokenSample } from '../samples/token.ts'

export const wrongSecret: Question = {
  name: 'wrong-secret',
  section: '4.1',
  asks: 'what the issuer answers to a wrong secret (one try)',
  requestsMax: 1,
  recordsMax: 0,
  samples: [tokenSample], // where the right one gives none, a wrong one tells nothing
  needs: [],
  harmless: false,
  async run(parts) {
    return judgeWrongSecret((await parts.askToken(`wrong-${parts.run}`)).answer)
  },
}

/** The daemon takes any refusal of the issuer for one of its credentials. Pure. */
export function judgeWrongSecret(seen: Seen): Finding {
  const assumed = '400 or 401, as RFC 6749 says'
  if (seen.kind === 'no-answer') return unknown(lineOf(seen), { assumed })
  const { status } = seen
  const unanswered = status === 401 ? null : whyNoAnswer(seen)
  if (unanswered !== null) return unknown(unanswered, { assumed })
  if (status >= 400 && status < 500)
    return sure(nameOf(seen), lineOf(seen), { assumed, differs: status !== 400 && status !== 401 })
  return sure(nameOf(seen), lineOf(seen), {
    assumed,
    differs: true,
    cannot:
      status < 300
        ? 'the issuer gives a token for a wrong secret: that a secret is wrong shows itself only at the first call'
        : 'the daemon takes that for an issuer in trouble (pause unreachable): a wrong secret will not be called one',
  })
}
