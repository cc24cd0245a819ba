import { expect, type TestContext, test } from 'vitest'
import type { Daemon } from '../../support/daemon.ts'
import type { Fault } from '../../support/faultProxy.ts'
import { scrape } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup, shortTimeout } from './harness.ts'

/** A service that accepts requests but never answers makes only records on the wire uncertain. */

const maxInFlight = 8
const records = 60

async function started({ onTestFinished }: TestContext): Promise<{ harness: Harness; daemon: Daemon }> {
  const harness = await setup()
  onTestFinished(() => harness[Symbol.asyncDispose]())
  const daemon = await harness.start({ ...shortTimeout, MAX_IN_FLIGHT: String(maxInFlight) })
  // Gets a token and connections before the fault, so that the fault hits records.
  await harness.insert('before-')
  await harness.becomes('before-', 'completed')
  return { harness, daemon }
}

async function insertMany(harness: Harness): Promise<string[]> {
  const markers = Array.from({ length: records }, (_, i) => `silence-${i}-`)
  for (const marker of markers) await harness.insert(marker)
  return markers
}

async function count(harness: Harness, state: string): Promise<number> {
  const { rows } = await harness.pool.query<{ n: number }>(
    'select count(*)::int as n from outboxd.submission where state = $1',
    [state],
  )
  return rows[0]?.n ?? 0
}

/** How often the pause was renewed since it began. */
async function level(harness: Harness): Promise<number> {
  const { rows } = await harness.pool.query<{ level: number }>(
    `select level from outboxd.pause where cause = 'unreachable'`,
  )
  return rows[0]?.level ?? -1
}

test.concurrent.for<Fault>([
  { kind: 'hang' },
  { kind: 'hang-after-request' },
  { kind: 'cut-before-request' },
])('the service hangs all night ($kind): only records on the wire are uncertain', async (fault, context) => {
  const { harness, daemon } = await started(context)
  await harness.service.setFault(fault)
  await insertMany(harness)
  await until(
    () => count(harness, 'uncertain'),
    (n) => n > 0,
  )
  await until(
    () => level(harness),
    (n) => n >= 2,
  )
  expect(await count(harness, 'uncertain')).toBeLessThanOrEqual(maxInFlight)
  expect(await count(harness, 'sending')).toBe(0)

  // Checks the messages during the pause.
  const says = await statusSays(harness.env)
  expect(says).toMatch(/Nothing is sent: paused \(unreachable\)/)
  expect(says).not.toContain('All is well')
  const metrics = () => scrape(daemon)
  await until(metrics, (text) => text.includes('outboxd_paused{reason="unreachable"} 1'))

  await harness.service.setFault(null)
  const doubtful = await count(harness, 'uncertain')
  await until(
    () => count(harness, 'completed'),
    (n) => n === records + 1 - doubtful,
  )
  expect(await count(harness, 'uncertain')).toBe(doubtful)
  expect(await harness.pauses()).toEqual([])
})

test.concurrent('only submissions hang: each try makes one uncertain', async (context) => {
  const { harness } = await started(context)
  await harness.fault({ kind: 'delay', delayMs: 60_000, when: 'before', endpoint: 'submit' })
  await insertMany(harness)
  await until(
    () => level(harness),
    (n) => n >= 2,
  )
  // Those on the wire at first, and one for each renewal of the pause.
  expect(await count(harness, 'uncertain')).toBeLessThanOrEqual(maxInFlight + (await level(harness)))
  expect(await count(harness, 'sending')).toBeLessThanOrEqual(1)
})
