import { describe, expect, test } from 'vitest'
import { type Strangeness, startStrangeService, strangenesses } from '../../support/strangeServices.ts'
import { until } from '../../support/until.ts'
import { setup, shortTimeout } from '../faults/harness.ts'

/** Something else answers instead of the service. LONG=1 tries all of test/support/strangeServices.ts. */
const short: readonly Strangeness[] = ['page', 'other', 'redirects', 'breaks']
const kinds = process.env.LONG ? strangenesses : short

const recordsInAll = 40
const inFlight = 4

test.each(
  kinds,
)('if successes name no transaction (%s), sending pauses, and only few records become uncertain', async (kind) => {
  await using harness = await setup()
  await using service = await startStrangeService(kind, { givesTokens: true })
  for (let n = 0; n < recordsInAll; n += 1) await harness.insert(`${kind} ${n} `)
  await harness.start({
    SERVICE_BASE_URL: service.url,
    SERVICE_AUTH_URL: service.url,
    MAX_IN_FLIGHT: `${inFlight}`,
    ...shortTimeout,
  })
  const [reason] = await until(harness.pauses, (reasons) => reasons.length > 0)
  expect(reason).toBe(kind === 'redirects' ? 'unauthorized' : 'unreachable')
  const { rows } = await harness.pool.query<{ state: string }>('select state from outboxd.submission')
  const [uncertain, others] = [
    rows.filter(({ state }) => state === 'uncertain'),
    rows.filter(({ state }) => !['uncertain', 'queued', 'sending'].includes(state)),
  ]
  expect(uncertain.length).toBeLessThanOrEqual(kind === 'redirects' ? 0 : 3 * inFlight)
  expect(others).toEqual([])
  expect(service.elsewhere).toEqual([])
})

describe('if the token endpoint is strange too', () => {
  test.each(kinds)('no record leaves (%s)', async (kind) => {
    await using harness = await setup()
    await using service = await startStrangeService(kind)
    await harness.insert(`${kind} `)
    await harness.start({ SERVICE_BASE_URL: service.url, SERVICE_AUTH_URL: service.url, ...shortTimeout })
    const [reason] = await until(harness.pauses, (reasons) => reasons.length > 0)
    expect(reason).toBe(kind === 'redirects' ? 'unauthorized' : 'unreachable')
    expect(new Set(service.asked)).toEqual(new Set(['POST /oauth/token']))
    expect(service.elsewhere).toEqual([])
    expect(await harness.outcome(`${kind} `)).toMatchObject({ state: 'queued', attempt: 0 })
  })
})
