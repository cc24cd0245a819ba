/** A line of a YAML file for people to read and to fill in. */
export interface YamlLine {
  /** Without its comment; empty for a comment alone. */
  readonly text: string
  readonly comment?: string
  /** What a person has to say here: the file cannot be loaded before. */
  readonly fillIn?: string
  /** What may stand there instead to try the rest; without it, nothing. */
  readonly trial?: string
}

const commentColumn = 45
const widthMax = 130
const mark = 'FILL IN'

/** The lines with their comments beside them, or above where these are long. */
export function writeYamlLines(lines: readonly YamlLine[]): string {
  return lines.map((line) => `${writeLine(line)}\n`).join('')
}

/** The same as it may be loaded, to try it: a line that is to be filled in says something, or is left out. */
export function writeTrialYaml(lines: readonly YamlLine[]): string {
  return lines.flatMap(({ text, fillIn, trial }) => (fillIn === undefined ? [text] : (trial ?? []))).join('\n')
}

/** The places of a YAML or SQL file that a person has to fill in, by line. */
export function findFillIns(text: string): { line: number; what: string }[] {
  return text.split('\n').flatMap((line, i) => {
    const what = placeForm.exec(line)?.[1]
    return what === undefined ? [] : [{ line: i + 1, what }]
  })
}

const placeForm = new RegExp(`(?:#|--) ${mark}: (.*)$`)

/** A text as a YAML scalar, in quotes where it would be read as something else. */
export function quoteYaml(text: string): string {
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

/** A name from a catalog may hold what ends a line, and with it the comment. */
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
