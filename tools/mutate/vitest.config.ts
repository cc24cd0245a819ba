import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

/** The tests of the decisions in stryker.config.json, which need no database. */
export default defineConfig({
  test: {
    root: join(import.meta.dirname, '..', '..', 'test'),
    testTimeout: 300_000,
    // With Stryker's counters, simulations of the poll schedule take a minute for each mutant.
    testNamePattern: /^(?!in the simulation)/,
    include: [
      'daemon/{decideSubmit,decideTrack,decideWriteBack,pollSchedule}.test.ts',
      'daemon/dispatch/{allocateRequests,planRound}.test.ts',
      'ledger/history/judgeHistory.test.ts',
      'mapping/{decimal,mapRecord}.test.ts',
      'model/{breaker,statuses}.test.ts',
      'service/readAnswer.test.ts',
    ],
  },
})
