import type { Exchange, Parts } from './exchange.ts'
import { type Answer, errorMessages, problem } from './problemAnswer.ts'
import { type AppliedBefore, findApplied } from './sandboxStore.ts'

/** The service's own no's: docs/interface.md, 7.2. */

/** E003 while the sandbox is told to be down. */
export function downAnswer(parts: Parts): Answer | undefined {
  return parts.live().down ? unavailable(parts) : undefined
}

/** E003, because it is told to be down or its database is away. */
export function unavailable(parts: Parts): Answer {
  return problem(parts.live().e003Status, `${errorMessages.E003}: try again in 5 minutes.`, { code: 'E003' })
}

/** E001 for a customer that the sandbox does not know. */
export function unknownCustomer(parts: Parts, customerId: string): Answer | undefined {
  const known = !parts.live().unknownCustomers.some((prefix) => customerId.startsWith(prefix))
  return known ? undefined : problem(400, `${errorMessages.E001}: ${customerId} was not found.`, { code: 'E001' })
}

export function duplicate(parts: Parts, what: string): Answer {
  return problem(parts.live().e002Status, `${errorMessages.E002}: ${what} was used before.`, { code: 'E002' })
}

/**
 * What to answer because the idempotency key was used before; undefined where the request is to be applied.
 *
 * A key counts as used by the request that was applied with it, even if its answer was lost; one that was answered with
 * an error has used up nothing. Under `replay`, another body with the same key is E002 all the same.
 *
 * @param replay makes the first answer again
 */
export async function usedBefore(
  parts: Parts,
  exchange: Exchange,
  client: string,
  replay: (before: AppliedBefore) => Answer,
): Promise<Answer | undefined> {
  const { idempotencyKey, endpoint, maskedBody: body } = exchange
  const mode = parts.live().idempotency
  if (idempotencyKey === null || mode === 'ignore') return undefined
  await exchange.lock(`key ${client} ${idempotencyKey}`)
  const before = await findApplied(parts.pool, { idempotencyKey, client, endpoint, body })
  if (before === undefined) return undefined
  return mode === 'replay' && before.sameRequest ? replay(before) : duplicate(parts, 'the idempotency key')
}
