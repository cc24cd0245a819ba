import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { clearProblems, raiseProblems } from '../../src/ledger/problems.ts'
import { applyStrictestSettings } from '../../src/ledger/settings.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { problemKinds } from '../../src/model.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { runStatus } from '../support/statusSays.ts'
import { type Fixture, openFixture } from './fixture.ts'

/** `status` and the metrics show each open problem until it is cleared. */

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(async () => {
  await fixture.reset()
  await writeHeartbeat(fixture.ledger.pool, { id: randomUUID(), version: '1', host: 'erp-1' })
})

async function said(json = false): Promise<string> {
  const { context } = await runStatus(() => fixture.context(), { json })
  return context.printed()
}

async function counted(): Promise<Record<string, number>> {
  const metrics = createMetrics({ version: 'test', clock: systemClock })
  metrics.setSnapshot({ ...(await readLedgerSnapshot(fixture.ledger.pool)), pauses: [], outboxWaiting: 0 })
  const series = (await metrics.render()).matchAll(/^outboxd_problems\{kind="(\w+)"\} (\d+)$/gm)
  return Object.fromEntries([...series].flatMap(([, kind, n]) => (n === '0' ? [] : [[kind, Number(n)]])))
}

test.each(problemKinds)('status and metrics show the problem %s until it is cleared', async (kind) => {
  const { pool } = fixture.ledger
  const problem = { kind, detail: 'as it was seen', retryInMs: 60_000 }
  await raiseProblems(pool, [
    { ...problem, subject: 'one' },
    { ...problem, subject: 'other' },
  ])
  const printed = await said()
  const [first = '', second] = printed.split('\n')
  expect(first).not.toContain('All is well')
  expect(first.length).toBeGreaterThan(30)
  expect(second).toBe('') // one sentence for both
  expect(printed).toContain(`problem         ${kind} one since `)
  expect(printed).toMatch(/tried again at .*: as it was seen\n/)
  expect(JSON.parse(await said(true))).toMatchObject({
    well: false,
    problems: [
      { kind, subject: 'one', detail: 'as it was seen', times: 1 },
      { kind, subject: 'other' },
    ],
  })
  expect(await counted()).toEqual({ [kind]: 2 })

  await clearProblems(pool, kind, null)
  expect(await said()).toMatch(/^All is well/)
  expect(await counted()).toEqual({})
})

test('if daemons differ in KEY_ON_FAILURE, status names the value of each', async () => {
  const { pool } = fixture.ledger
  const settings = { host: 'erp-1', requests: 100, windowMs: 60_000, requestTimeoutMs: 30_000, given: {} }
  await applyStrictestSettings(pool, { ...settings, instanceId: randomUUID(), keyOnFailure: 'continue' })
  await applyStrictestSettings(pool, { ...settings, instanceId: randomUUID(), keyOnFailure: 'block' })
  const printed = await said()
  expect(printed).toMatch(/^Daemons on this ledger have different settings \(\w+ on erp-1: KEY_ON_FAILURE, /)
  expect(printed).toMatch(/problem +settings_differ .*KEY_ON_FAILURE.*block/)
  expect(printed).toMatch(/problem +settings_differ .*KEY_ON_FAILURE.*continue/)
  expect(await counted()).toEqual({ settings_differ: 2 })
})
