import { expect, onTestFinished, test } from 'vitest'
import { startDaemonProcess } from '../../support/daemon.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

const records = 100
const maxInFlight = 8

test('kill -9 of the only daemon among 100 records: each ends once', async () => {
  const harness = await setup({ idempotency: 'ignore' })
  onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.fault({ kind: 'delay', delayMs: 150, endpoint: ['submit', 'order'] })
  const markers = Array.from({ length: records }, (_, i) => `kill-${i}-`)
  for (const [i, marker] of markers.entries()) await harness.insert(marker, { type: i % 4 === 0 ? 'order' : 'data' })

  const env = { ...harness.env, MAX_IN_FLIGHT: String(maxInFlight) }
  await using killed = await startDaemonProcess(env)
  const count = async (where: string) => {
    const { rows } = await harness.pool.query<{ n: number }>(
      `select count(*)::int as n from outboxd.submission where ${where}`,
    )
    return rows[0]?.n ?? 0
  }
  await until(
    async () => ({ done: await count(`state = 'completed'`), sending: await count(`state = 'sending'`) }),
    ({ done, sending }) => done >= 25 && sending >= 1,
  )
  killed.signal('SIGKILL')
  expect((await killed.ended()).signal).toBe('SIGKILL')
  const inFlight = await count(`state = 'sending'`)
  expect(inFlight).toBeGreaterThan(0)
  expect(inFlight).toBeLessThanOrEqual(maxInFlight)

  await using _restarted = await startDaemonProcess(env)
  await until(
    () => harness.pool.query(`select status, count(*)::int as n from outbox group by status order by status`),
    ({ rows }) => rows.every(({ status }) => status === 'completed' || status === 'uncertain'),
  )
  const outcomes = await Promise.all(markers.map(harness.outcome))
  expect(outcomes.filter(({ effects }) => effects > 1)).toEqual([])
  expect(outcomes.filter(({ state, effects }) => state === 'completed' && effects !== 1)).toEqual([])
  const uncertain = outcomes.filter(({ state }) => state === 'uncertain')
  expect(uncertain).toHaveLength(inFlight)
})
