import { isRefusal, isSuccess, lineOf, nameOf, type Seen } from './exchange.ts'
import { type Finding, likely, sure, unknown } from './finding.ts'

/**
 * Says, too, why nothing more should be asked of whatever answers so; null where more can be. Pure.
 *
 * @param beside what a path at which nothing is served is answered, where it was asked
 */
export function judgeAddress(seen: Seen, beside: Seen | null): { finding: Finding; stop: string | null } {
  const assumed = 'let in; else 401, as the interface says, or 403'
  const line = lineOf(seen)
  if (seen.kind === 'no-answer')
    return { finding: unknown(line, { assumed }), stop: `the first call with a good token was not answered: ${line}` }
  const refused = (found: string, why: string, cannot: string) => ({
    finding: likely(found, why, { assumed, differs: true, cannot }),
    stop: `the first call with a good token ${why}`,
  })
  const sentAway = (why: string) => ({
    finding: unknown(`the first call ${why}: whether it would be let in there, nobody has asked`, { assumed }),
    stop: `the first call with a good token ${why}`,
  })
  if (seen.status === 401 || seen.status === 403)
    return refused(
      `refused with ${seen.status}`,
      `was answered ${line}`,
      'every record waits (pause unauthorized) until the operator of the service lets this address in, or gives the client the permission',
    )
  if (seen.status >= 300 && seen.status < 400)
    return sentAway(`was answered ${seen.status} to ${(seen.headers.location ?? '(nowhere)').replace(/[?#].*$/s, '')}`)
  if (isSuccess(seen) && !(beside !== null && isRefusal(beside)))
    return refused(
      'something else',
      `was answered ${line}, though there is no such transaction, and a path at which nothing is served the same: that is not the service`,
      'nothing of the service answers at SERVICE_BASE_URL',
    )
  if (isSuccess(seen) || isRefusal(seen))
    return {
      finding: sure(
        'let in',
        `a good token was answered ${nameOf(seen)}; how another address is answered cannot be asked from here`,
        { assumed },
      ),
      stop: null,
    }
  return { finding: unknown(line, { assumed }), stop: null }
}
