const commentColumn = 44

/** A line with a comment. */
export const withComment = (text: string, comment: string): string =>
  `${text.padEnd(commentColumn)} # ${onOneLine(comment)}`

/** A name or value of the database may contain a line break, which would end a comment. */
export const onOneLine = (text: string): string => text.replace(/\s*[\p{Cc}\u2028\u2029]+\s*/gu, ' ')

/**
 * A line with the word FILL_IN in place of what the user has to put there, and a comment with the candidates. A file with
 * such a line does not load.
 */
export const withFillIn = (text: string, what: string, candidates: readonly string[] = []): string[] => [
  withComment(text, `FILL IN: ${what}`),
  ...listCandidates(candidates),
]

export const listCandidates = (candidates: readonly string[]): string[] =>
  candidates.length === 0 ? [] : [`#   one of: ${onOneLine(candidates.join(', '))}`]

export interface FillInPlace {
  /** Both count from 1. */
  readonly line: number
  readonly column: number
  readonly what: string
}

/** Finds the lines that have the word FILL_IN outside of a comment, in YAML or SQL. */
export function findFillInPlaces(text: string): FillInPlace[] {
  return text.split('\n').flatMap((line, i) => {
    const at = placeForm.exec(line)?.[1]?.length
    if (at === undefined) return []
    return [{ line: i + 1, column: at + 1, what: noteForm.exec(line)?.[1] ?? 'a value in place of FILL_IN' }]
  })
}

/** The text before FILL_IN, without a comment. */
const placeForm = /^((?:(?!(?:^|\s)(?:#|--)).)*?)\bFILL_IN\b/
const noteForm = /(?:#|--) FILL IN: (.*)$/

/** Adds quotes if YAML could read the text as something else. */
export function quoteForYaml(text: string): string {
  const isPlain = /^[A-Za-z_][\w-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
  return isPlain ? text : JSON.stringify(text)
}
