import { randomUUID } from 'node:crypto'
import { type AnsweredExchange, isSuccess } from '../exchange.ts'
import type { Parts, Sample } from '../question.ts'
import { acceptedShape, idIn, submissionSample, submit } from './submission.ts'

/** One request twice under one key, and once more under another. */
export interface Repeats {
  /** The header in which the keys were sent. */
  header: string
  first: AnsweredExchange
  again: AnsweredExchange
  otherKey: AnsweredExchange
}

/** Where services look for a key, beside the header of the draft. */
const otherHeaders = ['X-Idempotency-Key', 'X-Request-ID', 'Request-Id'] as const

/**
 * Under the configured header, as the daemon sends it: the uuid in quotes. Where nothing comes of that, under all the others at
 * once, and where something does, under one after the other.
 */
export const repeatsSample: Sample<Repeats> = {
  name: 'a record twice under one idempotency key',
  requestsMax: 3 + 2 + (otherHeaders.length - 1) + 1,
  recordsMax: 3 + 2 + (otherHeaders.length - 1) + 1,
  samples: [submissionSample],
  async take(parts) {
    const usual = parts.config.service.idempotencyHeader
    const [one, other] = [randomUUID(), randomUUID()]
    const first = await under(parts, [usual], one)
    const again = await under(parts, [usual], one)
    const otherKey = await under(parts, [usual], other)
    const asConfigured = { header: usual, first, again, otherKey }
    if (recognised(first, again) !== 'no') return asConfigured
    return (
      (await underOthers(
        parts,
        otherHeaders.filter((each) => each.toLowerCase() !== usual.toLowerCase()),
      )) ?? asConfigured
    )
  },
}

/** @returns null where none of these headers is looked at */
async function underOthers(parts: Parts, headers: readonly string[]): Promise<Repeats | null> {
  const key = randomUUID()
  const first = await under(parts, headers, key)
  const again = await under(parts, headers, key)
  if (recognised(first, again) === 'no' || idIn(first) === null) return null
  let header = headers.at(-1) ?? ''
  for (const each of headers.slice(0, -1)) {
    if (recognised(first, await under(parts, [each], key)) === 'no') continue
    header = each
    break
  }
  return { header, first, again, otherKey: await under(parts, [header], randomUUID()) }
}

async function under(parts: Parts, names: readonly string[], key: string): Promise<AnsweredExchange> {
  const headers = Object.fromEntries(names.map((name) => [name.toLowerCase(), `"${key}"`]))
  return submit(parts, await acceptedShape(parts), 'one record, repeated', { headers })
}

/** Whether a second request was known for the first; null where its answer says neither. Pure. */
export function recognised(
  first: AnsweredExchange,
  second: AnsweredExchange,
): 'same id' | 'E002' | 'other' | 'no' | null {
  const { answer } = second
  if (isSuccess(answer)) return idIn(second) === null ? null : idIn(second) === idIn(first) ? 'same id' : 'no'
  if (answer.code === 'E002') return 'E002'
  return answer.status >= 400 && ![401, 403, 429].includes(answer.status) ? 'other' : null
}
