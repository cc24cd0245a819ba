import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Runs the slow tests of whole daemons first, so that no worker is left with one at the end. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const waits = ({ moduleId }: TestSpecification) => /\/test\/(e2e|crash)\//.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(waits), ...sorted.filter((file) => !waits(file))]
  }
}
