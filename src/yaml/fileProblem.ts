/** What is wrong with a file, and where. Lines and columns count from 1. */
export interface FileProblem {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
}

/** Thrown with every problem of every file at once, so that one round of mending is enough. */
export class FilesInvalid extends Error {
  override name = 'FilesInvalid'
  /** Never empty; sorted by file, line, column. */
  readonly problems: readonly FileProblem[]
  constructor(problems: readonly FileProblem[]) {
    super(problems.map(({ file, line, column, message }) => `${file}:${line}:${column} ${message}`).join('\n'))
    this.problems = problems
  }
}
