import { resources } from '../../resources.ts'
import { type Exchange, remainingOf } from '../exchange.ts'
import type { Parts, Sample } from '../question.ts'
import { firstCallSample } from './firstCall.ts'

/** Refused POSTs with pauses between, until what was used at first has left the window as it is configured. */
export const windowSample: Sample<readonly Exchange[]> = {
  name: 'POSTs of an empty body over a window',
  requestsMax: 8,
  recordsMax: 0,
  samples: [firstCallSample],
  async take(parts) {
    const { first } = await parts.sample(firstCallSample)
    if (remainingOf(first.answer) === null) return []
    const { windowMs } = parts.config.rateLimit
    const startMs = parts.nowMs()
    const looks: Exchange[] = []
    // Halves of a window, so that between two looks one half has left it and another has not.
    for (const share of [0, 0.02, 0.5, 0.52, 1.25, 1.27, 1.75, 1.77]) {
      await parts.waitMs(Math.max(0, startMs + share * windowMs - parts.nowMs()))
      looks.push(await emptyPost(parts))
    }
    return looks
  },
}

/** @param beyondLimit whether it is sent though the budget has no slot, on purpose */
export const emptyPost = (parts: Parts, beyondLimit = false): Promise<Exchange> =>
  parts.postWhatever(resources.data.path, '{}', { beyondLimit })
