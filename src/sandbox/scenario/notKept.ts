import type { z } from 'zod'
import { isSecretName, openFields } from '../gate/maskSecrets.ts'
import type { FieldMatch, RequestMatch } from './requestMatch.ts'

/** Refuses to ask the ledger for what it does not keep: nothing would ever be found, and `count: 0` would pass. */
export function refuseWhatIsNotKept({ endpoint, body = {} }: RequestMatch, context: z.RefinementCtx): void {
  const asked = [endpoint ?? []].flat()
  for (const [field, match] of Object.entries(body)) {
    const why = whyNotKept(field.split('.'), match, asked)
    if (why !== undefined) context.addIssue({ code: 'custom', path: ['body', field], message: why })
  }
}

/** That a field is there is kept; what it holds is not, and so nothing within it. */
function whyNotKept(steps: string[], match: FieldMatch, endpoints: string[]): string | undefined {
  if (endpoints.length > 0 && endpoints.every((each) => each === 'other'))
    return 'cannot be asked for: the ledger does not keep the body of what was sent to no endpoint'
  const isToken = endpoints.length > 0 && endpoints.every((each) => each === 'token')
  const masked = steps.findIndex((step) => isSecretName(step) || (isToken && !openFields.includes(step)))
  const asksExistence = typeof match === 'object' && match !== null && 'exists' in match
  if (masked === -1 || (asksExistence && masked === steps.length - 1)) return undefined
  return 'cannot be asked for: the ledger does not keep what this field holds, which may be a secret; { exists: … } alone can be asked'
}
