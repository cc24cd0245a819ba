import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import ClosingLine from './support/closingLine.ts'
import LongestFirst from './support/longestFirst.ts'

/** Of the faults, what the suite has: SIGKILL, signals, and what the service and the network can answer or not. */
const shortFaults = ['answers', 'kill', 'network', 'policies', 'records', 'signals']

/** The other faults and the browser are half of all work, and commands of their own: `npm run test:faults`, `test:browser`. */
const faults = [`e2e/faults/!(${shortFaults.join('|')}).test.ts`, 'crash/campaign.test.ts']
const browser = ['console/browser/*.test.ts']

/** What measures has the machine to itself, after all the others. */
const measured = ['bench/*.test.ts']

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
      project('suite', { include: ['**/*.test.ts'], exclude: [...faults, ...browser, ...measured] }),
      project('faults', { include: faults }),
      project('browser', { include: browser }),
      project('measured', { include: measured, maxWorkers: 2, sequence: { groupOrder: 2 } }),
    ],
  },
})

function project(
  name: string,
  settings: NonNullable<TestProjectInlineConfiguration['test']>,
): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: {
      name,
      // Most tests wait for a database, a socket or a process: as many workers as cores would leave these idle.
      maxWorkers: 6,
      // A worker keeps its modules for the next file: to load them anew for each was a fifth of the suite's work.
      isolate: false,
      sequence: { groupOrder: 1 },
      ...settings,
    },
  }
}
