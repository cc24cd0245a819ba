import { expect, test } from 'vitest'
import { runBudget } from '../../../tools/bench/harness/runBudget.ts'
import { createDatabase } from '../../support/database.ts'

// The short form of bench:budget: a minute is two seconds. Polling at fixed intervals of 5 s would cost at least 1.5
// polls for each record here.
test('a saturated budget completes at least 80 % of the records that it allows, with fewer than 1.3 polls each', async () => {
  await using database = await createDatabase()
  const limit = 60
  const { perWindow, saturated, refused } = await runBudget({
    database,
    schedule: 'learned',
    limit,
    windowMs: 2_000,
    processingTime: 'constant:1:0.1',
    warmUpWindows: 5,
    countedWindows: 4,
    idleWindows: 0,
  })
  expect(refused).toBe(0)
  expect(perWindow).toBeGreaterThan((limit / 2) * 0.8)
  expect(saturated.pollsPerRecord).toBeLessThan(1.3)
})
