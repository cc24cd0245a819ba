import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClientRateLimits } from '../../../src/sandbox/gate/clientRateLimits.ts'
import { liveSettingsSchema } from '../../../src/sandbox/sandboxSettings.ts'

const second = 1_000_000

class RateWindow {
  readonly #rates: ClientRateLimits

  constructor(rateLimitRequests: number, windowUs: number) {
    const live = liveSettingsSchema.parse({ rateLimitRequests, rateLimitWindowSeconds: windowUs / second })
    this.#rates = new ClientRateLimits(() => live)
  }

  take(client: string, arrivedUs: number) {
    const asker = { client, tokenId: null, address: '', endpoint: 'submit' as const }
    const { admitted, remaining, retryAfterSeconds } = this.#rates.admit(asker, arrivedUs)
    return { admitted, remaining, retryAfterSeconds }
  }
}

test('the 101st request is refused until the first has left the window', () => {
  const window = new RateWindow(100, 60 * second)
  for (let n = 0; n < 100; n += 1) expect(window.take('a', n).admitted).toBe(true)
  const refused = window.take('a', 100)
  expect(refused).toEqual({ admitted: false, remaining: 0, retryAfterSeconds: 60 })
  expect(window.take('a', 60 * second - 1).admitted).toBe(false)
  expect(window.take('a', 60 * second).admitted).toBe(true)
  expect(window.take('a', 60 * second).admitted).toBe(false)
})

test('remaining counts down, and up again as requests leave the window', () => {
  const window = new RateWindow(3, second)
  expect([0, 10, 20].map((us) => window.take('a', us).remaining)).toEqual([2, 1, 0])
  expect(window.take('a', second + 10).remaining).toBe(1)
})

test('each client has its own limit', () => {
  const window = new RateWindow(1, second)
  expect(window.take('a', 0).admitted).toBe(true)
  expect(window.take('b', 0).admitted).toBe(true)
  expect(window.take('a', 1).admitted).toBe(false)
})

test('in order of arrival, a request is refused only when its window is full', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3000), { maxLength: 200 }), fc.integer({ min: 1, max: 7 }), (times, limit) => {
      const window = new RateWindow(limit, 1000)
      const admitted: number[] = []
      for (const time of times.toSorted((a, b) => a - b)) {
        const full = admitted.filter((other) => time - other < 1000).length >= limit
        expect(window.take('a', time).admitted).toBe(!full)
        if (!full) admitted.push(time)
      }
    }),
  )
})
