import type { Reporter, TestModule } from 'vitest/node'

/** Ends a run with a plain line, `N passed, N failed`, for readers of logs that do not know vitest's. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state))
    const count = (state: string) => states.filter((each) => each === state).length
    // A file that could not even be loaded, and an error outside any test, have no test to fail.
    const broken = modules.filter((module) => module.state() === 'failed' && module.errors().length > 0).length
    const failed = count('failed') + broken + unhandledErrors.length
    const skipped = count('skipped')
    process.stdout.write(`\n${count('passed')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`)
  }
}
