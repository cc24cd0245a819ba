const commentColumn = 44

/** A line with a comment. A name from the Postgres catalog may contain a line break, which would end the comment. */
export const withComment = (text: string, comment: string): string =>
  `${text.padEnd(commentColumn)} # ${comment.replace(/[\s\p{Cc}]+/gu, ' ')}`

/** A line with the word FILL_IN in place of what the user has to put there. A file with such a line does not load. */
export const withFillIn = (text: string, what: string): string => withComment(text, `FILL IN: ${what}`)

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
