import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import ClosingLine from './support/closingLine.ts'
import LongestFirst from './support/longestFirst.ts'

/** Tests of whole daemons in the suite: faults of a service's answers, SIGKILL, three instances, and one tutorial. */
const shortFaults = ['answers', 'kill', 'records']
const shortE2e = ['consoleCost', 'hangingCommits', 'sourceQueries', 'status', 'threeProcesses', 'tutorialErp']

/** Long runs of programs or Prometheus; with the browser half of all work: `npm run test:e2e`, `test:browser`. */
const e2e = [
  `e2e/faults/!(${shortFaults.join('|')}).test.ts`,
  `e2e/!(${shortE2e.join('|')}).test.ts`,
  'e2e/discover/!(strange).test.ts',
  'e2e/sandbox/embedded.test.ts',
  'e2e/services/*.test.ts',
  'tools/crash/{campaign,eachStatement}.test.ts',
  'commands/demo.test.ts',
  '**/alertRules.test.ts',
]
const browser = ['console/browser/*.test.ts']

/** Benchmarks run by themselves, after all other tests. */
const measured = ['tools/bench/*.test.ts']

export default defineConfig({
  test: {
    root: import.meta.dirname,
    globalSetup: ['support/globalSetup.ts'],
    reporters: ['default', new ClosingLine()],
    sequence: { sequencer: LongestFirst },
    // Far more than any test needs, for busy machines: a wait ends as soon as its condition is true.
    expect: { poll: { timeout: 120_000 } },
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Most tests here time real processes on a machine that CI shares: a failed test is tried once more, and shown as such.
    retry: process.env.CI ? 1 : 0,
    projects: [
      project('suite', { include: ['**/*.test.ts'], exclude: [...e2e, ...browser, ...measured] }),
      project('e2e', { include: e2e }),
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
      // Most tests wait for a database, a socket or a process: as many workers as cores would leave the cores idle.
      maxWorkers: 6,
      // A worker keeps its modules for the next file: loading them for each file was a fifth of the suite's work.
      isolate: false,
      sequence: { groupOrder: 1 },
      ...settings,
    },
  }
}
