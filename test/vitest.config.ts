import { defineConfig } from 'vitest/config'
import ClosingLine from './support/closingLine.ts'
import LongestFirst from './support/longestFirst.ts'

/** What measures has the machine to itself, after all the others. */
const alone = ['bench/**/*.test.ts']

export default defineConfig({
  test: {
    root: import.meta.dirname,
    globalSetup: ['support/globalSetup.ts'],
    reporters: ['default', new ClosingLine()],
    sequence: { sequencer: LongestFirst },
    // Generous, for machines with two busy cores: a condition that comes true ends the wait at once.
    expect: { poll: { timeout: 60_000 } },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Most tests here time real processes on a machine that CI shares: what fails there is tried once more, and shown as such.
    retry: process.env.CI ? 1 : 0,
    projects: [
      {
        extends: true,
        test: {
          name: 'behaviour',
          include: ['**/*.test.ts'],
          exclude: alone,
          // Most tests wait for a database, a socket or a process: as many workers as cores would leave these idle.
          maxWorkers: 6,
          // A worker keeps its modules for the next file: to load them anew for each was a fifth of the suite's work.
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: alone, maxWorkers: 2, sequence: { groupOrder: 2 } },
      },
    ],
  },
})
