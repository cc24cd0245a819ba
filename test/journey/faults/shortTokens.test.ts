import { expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Rig, setup } from './rig.ts'

const paused = (causes: readonly string[]) => causes.filter((cause) => cause.startsWith('pause unauthorized'))

/** It takes the service's tokens to last 0.9 s, so that no 401 comes but those that the test asks for. */
async function startShort(rig: Rig) {
  return rig.start({ RATE_LIMIT_REQUESTS: '2', RATE_LIMIT_WINDOW_SECONDS: '1', TOKEN_EXPIRES_IN_UNIT: 'milliseconds' })
}

test('tokens that are over when the service looks at them: new ones, and nobody is told that it does not let us in', async () => {
  await using rig = await setup({ tokenLifetimeSeconds: 900 })
  await rig.fault({ kind: 'answer', status: 401, endpoint: 'submit', times: 3 })
  await startShort(rig)
  await rig.insert('short-')
  const { causes, effects } = await rig.becomes('short-', 'completed')
  expect(causes.filter((cause) => cause.includes('401')).length).toBeGreaterThanOrEqual(3)
  expect(paused(causes)).toEqual([])
  expect(effects).toBe(1)
}, 60_000)

test('a service that refuses each such token is believed in the end, and the metrics say that the budget starves', async () => {
  await using rig = await setup({ tokenLifetimeSeconds: 900 })
  await rig.fault({ kind: 'answer', status: 401, endpoint: 'submit' })
  const { port } = await startShort(rig)
  await rig.insert('never-')
  const metrics = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  await until(metrics, (text) => /outboxd_problems\{kind="budget_starved"\} [1-9]/.test(text), 60_000)
  await until(rig.pauses, (reasons) => reasons.includes('unauthorized'), 60_000)
  await rig.control('DELETE', 'faults')
  expect(await rig.becomes('never-', 'completed')).toMatchObject({ effects: 1 })
}, 120_000)
