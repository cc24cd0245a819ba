import { expect, onTestFinished, test } from 'vitest'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup } from './harness.ts'

/** Records that always get a server error do not stop records that the service accepts. */

async function started(fault: Record<string, unknown>): Promise<Harness> {
  const harness = await setup()
  onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.fault({ kind: 'answer', endpoint: 'submit', bodyContains: 'bad-', ...fault })
  await harness.start()
  return harness
}

test('502 to some records: only those are uncertain', async () => {
  const harness = await started({ status: 502 })
  const bad = Array.from({ length: 9 }, (_, i) => `bad-${i}-`)
  const good = Array.from({ length: 20 }, (_, i) => `good-${i}-`)
  for (const marker of bad) await harness.insert(marker)

  // Now nothing is left to try, so the pause ends with its time, and the next record is the trial.
  await until(harness.pauses, (reasons) => reasons.includes('unreachable'))
  const { rows } = await harness.pool.query(`select detail from outboxd.pause where reason = 'breaker'`)
  expect(rows[0]?.detail).toMatch(/answered 502/)
  expect(rows[0]?.detail).not.toMatch(/unanswered/)

  for (const marker of good) await harness.insert(marker)
  await Promise.all(good.map((marker) => harness.becomes(marker, 'completed')))
  const outcomes = await Promise.all(bad.map((marker) => harness.becomes(marker, 'uncertain')))
  expect(outcomes.every(({ posts }) => posts.length === 1)).toBe(true)
  expect(await statusSays(harness.env)).toMatch(/9 records need attention \(9 uncertain\)/)
})

test('some records always get 503 with E003: rejected, others go on', async () => {
  const harness = await started({ status: 503, code: 'E003' })
  const bad = Array.from({ length: 10 }, (_, i) => `bad-${i}-`)
  for (const marker of bad) await harness.insert(marker)
  const rejected = async () => {
    const { rows } = await harness.pool.query<{ n: number }>(
      `select count(*)::int as n from outboxd.submission where state = 'rejected'`,
    )
    return rows[0]?.n ?? 0
  }
  for (let i = 0; (await rejected()) < bad.length && i < 200; i++) {
    await harness.insert(`good-${i}-`)
    await harness.becomes(`good-${i}-`, 'completed')
    expect(await harness.pauses()).not.toContain('unreachable')
  }
  expect(await rejected()).toBe(bad.length)
})
