import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** The tests of the decisions in stryker.config.json, which need no database. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '..', '..', 'test'),
    testTimeout: 300_000,
    include: [
      'daemon/decideWriteBack.test.ts',
      'daemon/dispatch/{allocateRequests,planRound}.test.ts',
      'ledger/history/judgeHistory.test.ts',
      'mapping/decimal.test.ts',
      'model/{breaker,statuses}.test.ts',
    ],
  },
})
