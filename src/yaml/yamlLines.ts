export interface YamlLine {
  /** The line without its comment; empty if the line is only a comment. */
  readonly text: string
  readonly comment?: string
  /** Says what the user has to put in place of the word FILL_IN in `text`. */
  readonly fillIn?: string
}

const commentColumn = 45
const widthMax = 130
const mark = 'FILL IN'

/** A short comment stands at the end of its line, a long comment above it. */
export function writeYamlLines(lines: readonly YamlLine[]): string {
  return lines.map((line) => `${writeLine(line)}\n`).join('')
}

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
const noteForm = new RegExp(`(?:#|--) ${mark}: (.*)$`)

/** Adds quotes if YAML could read the text as something else. */
export function quoteForYaml(text: string): string {
  const isPlain = /^[A-Za-z_][\w-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
  return isPlain ? text : JSON.stringify(text)
}

function writeLine({ text, comment = '', fillIn }: YamlLine): string {
  const note = onOneLine(fillIn === undefined ? comment : `${mark}: ${fillIn}`)
  if (note === '') return text
  const indent = ' '.repeat(text.length - text.trimStart().length)
  if (text === '') return wrap(note, '')
  const beside = `${text.padEnd(commentColumn - 1)} # ${note}`
  return beside.length <= widthMax || fillIn !== undefined ? beside : `${wrap(note, indent)}\n${text}`
}

/** Removes line breaks, which would end the comment: a name from the Postgres catalog may contain one. */
const onOneLine = (note: string): string => note.replace(/[\s\p{Cc}]+/gu, ' ')

function wrap(note: string, indent: string): string {
  const lines: string[] = []
  for (const word of note.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + word.length + 1 > widthMax) lines.push(`${indent}# ${word}`)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines.join('\n')
}
