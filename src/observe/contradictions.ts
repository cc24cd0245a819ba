import type { Contract } from '../config.ts'
import { type Answer, type Breach, isSuccess } from '../model.ts'
import { type Endpoint, resources } from '../resources.ts'

/**
 * In what an answer contradicts what the service was seen to answer. Pure.
 *
 * @param contract what `outboxd discover` saw; null where nobody has looked
 */
export function contradictions(contract: Contract | null, endpoint: Endpoint, answer: Answer): Breach[] {
  if (contract === null || answer.kind === 'no-answer' || endpoint === 'token') return []
  const { status, code, rateRemaining } = answer
  const expected = (name: string): string => contract[name as keyof Contract] ?? String(status)
  const isOther = (name: string) => expected(name) !== String(status)
  const breaches: Breach[] = []
  if (isSuccess(status) && isOther(`${endpoint}_ok`)) breaches.push('other_success_status')
  if (!isSuccess(status) && code !== null && isOther(code.toLowerCase())) breaches.push('other_error_status')
  if (polls.has(endpoint) && code === null && isRefusal(status) && isOther(`${endpoint}_unknown`))
    breaches.push('other_unknown_status')
  if (contract.rate_remaining === 'all' && rateRemaining === null && status < 500) breaches.push('no_rate_remaining')
  return breaches
}

const polls: ReadonlySet<Endpoint> = new Set(Object.values(resources).map(({ ask }) => ask))

/** A question for an id that the service gave and does not know any more; not what speaks of the token or of everybody. */
const isRefusal = (status: number) => status >= 400 && status < 500 && ![401, 403, 407, 408, 429].includes(status)
