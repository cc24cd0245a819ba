import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Whole daemons wait the longest: they come first, so that no worker is left alone with one of them at the end. */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const waits = ({ moduleId }: TestSpecification) => /\/test\/(e2e|crash)\//.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(waits), ...sorted.filter((file) => !waits(file))]
  }
}
