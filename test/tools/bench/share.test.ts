import { expect, test } from 'vitest'
import { runShare } from '../../../tools/bench/harness/runShare.ts'
import { createDatabase } from '../../support/database.ts'

// The short form of bench:share. Its bounds are loose: a suite's machine is busy, and docs/why/performance.md has the
// figures.
test('three daemons together never exceed one budget in any window, and use over 80 % of it', async () => {
  await using database = await createDatabase()
  const limit = 60
  const figures = await runShare({
    database,
    daemons: 3,
    limit,
    windowMs: 2_000,
    processingTime: 'constant:0.5',
    warmUpWindows: 2,
    countedWindows: 5,
  })
  expect(figures.mostInAnyWindow).toBeLessThanOrEqual(limit)
  expect(figures.refused).toBe(0)
  expect(figures.used).toBeGreaterThan(0.8)
})
