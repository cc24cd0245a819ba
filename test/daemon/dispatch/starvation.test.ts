import { expect, test } from 'vitest'
import { watchStarvation } from '../../../src/daemon/dispatch/starvation.ts'

function setup() {
  const watch = watchStarvation()
  return {
    parts: () => watch.starving().map(({ part }) => part),
    saw: (...all: boolean[]) => all.forEach(watch.sawPermit),
    sawToken: watch.sawToken,
  }
}

test('five permits in a row that run out are said; the first request that leaves ends it', () => {
  const { parts, saw } = setup()
  saw(false, false, false, false)
  expect(parts()).toEqual([])
  saw(false, false)
  expect(parts()).toEqual(['permits'])
  saw(true)
  expect(parts()).toEqual([])
})

test('one that runs out now and then is no starvation', () => {
  const { parts, saw } = setup()
  for (let n = 0; n < 10; n++) saw(false, false, false, false, true)
  expect(parts()).toEqual([])
})

test('three tokens in a row that were over too soon are said, until a request is let in', () => {
  const watch = watchStarvation()
  watch.sawOutlived(2, 2_000)
  expect(watch.starving()).toEqual([])
  watch.sawOutlived(3, 2_000)
  expect(watch.starving()).toEqual([
    { part: 'token', detail: expect.stringMatching(/^a token lasts 2 s, and 3 in a row/) },
  ])
  watch.sawOutlived(0, 0)
  expect(watch.starving()).toEqual([])
})

test.each([
  { lifetimeMs: 60_000, requests: 1, starving: ['token'] },
  { lifetimeMs: 61_000, requests: 1, starving: [] },
  { lifetimeMs: 60_000, requests: 2, starving: [] },
  { lifetimeMs: null, requests: 1, starving: [] },
])('a token of $lifetimeMs ms, and $requests requests a minute: $starving', ({ lifetimeMs, requests, starving }) => {
  const { parts, sawToken } = setup()
  sawToken(lifetimeMs, { requests, windowMs: 60_000 })
  expect(parts()).toEqual(starving)
})
