import { type Exchange, isSuccess, remainingOf } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const rateHeader: Question = {
  name: 'rate-header',
  section: '8',
  asks: 'which answers carry X-RateLimit-Remaining',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeRateHeader(parts.exchanges())
  },
}

/** Pure. */
export function judgeRateHeader(exchanges: readonly Exchange[]): Finding {
  const assumed = 'any: it is used where it is'
  const answered = exchanges.filter(({ answer }) => answer.kind === 'response')
  const groups = Object.entries(Object.groupBy(answered, groupOf))
  const shares = groups.map(([name, all = []]) => {
    const having = all.filter(({ answer }) => remainingOf(answer) !== null).length
    return {
      name,
      share: having === 0 ? 'none' : having === all.length ? 'all' : 'some',
      text: `${name}: ${having} of ${all.length}`,
    }
  })
  const why = shares.map(({ text }) => text).join(', ')
  if (shares.length === 0) return unknown('nothing was answered', { assumed })
  const having = shares.filter(({ share }) => share === 'all').map(({ name }) => name)
  const some = shares.filter(({ share }) => share === 'some').map(({ name }) => `some ${name}`)
  const success = shares.find(({ name }) => name === 'successes')?.share
  const refusal = shares.find(({ name }) => name === 'refusals')?.share
  const isOnAll = refusal === 'all' && (success === 'all' || success === undefined)
  const isOnNone = having.length + some.length === 0
  const on = isOnNone ? 'none' : isOnAll ? 'all' : 'some'
  const contract: Finding['contract'] = refusal === undefined ? {} : { rate_remaining: on }
  if (isOnNone)
    return sure('none', why, {
      assumed,
      contract,
      advice: ['nobody else should spend from the same limit: the daemon could not notice it before it is refused'],
    })
  return sure(shares.every(({ share }) => share === 'all') ? 'all' : [...having, ...some].join(', '), why, {
    assumed,
    contract,
  })
}

function groupOf({ path, answer }: Exchange): string {
  if (path.endsWith('/oauth/token')) return 'tokens'
  if (answer.kind === 'response' && answer.status === 401) return 'unauthorized'
  return isSuccess(answer) ? 'successes' : 'refusals'
}
