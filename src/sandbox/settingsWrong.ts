export class SettingsWrong extends Error {
  override name = 'SettingsWrong'
  /** Never empty. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}
