import { randomUUID } from 'node:crypto'
import { resources } from '../../resources.ts'
import { fieldOf, jsonOf } from '../exchange.ts'
import { CannotAsk, type Sample } from '../question.ts'
import { jwtLifetimeSeconds } from '../questions/tokenUnit.ts'
import { firstCallSample } from './firstCall.ts'
import { accessTokenIn } from './token.ts'

const looksMax = 12
/** Longer than this nobody waits. */
const heldMaxMs = 75 * 60_000
const units = [1, 1_000, 60_000]

/** A token of its own, tried until it is refused: at the end that it would have in each unit, and before. */
export const heldTokenSample: Sample<null> = {
  name: 'a token held to its end',
  requestsMax: 1 + looksMax,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    const grant = await parts.askToken(parts.config.service.clientSecret)
    const token = accessTokenIn(grant.answer)
    if (token === null) throw new CannotAsk('the issuer gave no token to hold')
    const expiresIn = Number(fieldOf(jsonOf(grant.answer), 'expires_in'))
    const bySelf = jwtLifetimeSeconds(token)
    const endsMs = (bySelf === null ? units.map((unitMs) => expiresIn * unitMs) : [bySelf * 1_000]).filter(
      (ms) => ms >= 1_000 && ms <= heldMaxMs,
    )
    if (endsMs.length === 0)
      throw new CannotAsk(`a token lasts longer than ${heldMaxMs / 60_000} minutes by what it says`)
    for (const dueMs of looksBefore(endsMs)) {
      await parts.waitMs(Math.max(0, grant.startedAtMs + dueMs - parts.nowMs()))
      const { answer } = await parts.getWhatever(`${resources.data.path}/${randomUUID()}`, { accessToken: token })
      if (answer.kind === 'response' && answer.status === 401) break
    }
    return null
  },
}

/** Before each end and right after it, and on the way to the last, so that an early end is seen to be one. Pure. */
export function looksBefore(endsMs: readonly number[]): number[] {
  const last = Math.max(...endsMs)
  const around = endsMs.flatMap((ms) => [ms * 0.9, ms + 2_000])
  const onTheWay = [0.15, 0.3, 0.5, 0.7].map((share) => share * last)
  return [...around, ...onTheWay].toSorted((a, b) => a - b).slice(0, looksMax)
}
