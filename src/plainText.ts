import { styleText } from 'node:util'
import { boundText } from './boundText.ts'

/** Cuts and styles text for a terminal. Text for a file or a pipe stays whole and plain. */
export interface Terminal {
  columns: number
  bold(text: string): string
}

/** Null if the stream is not a terminal. If NO_COLOR is set, `bold` changes nothing. */
export function terminalOf(stream: NodeJS.WritableStream & { isTTY?: boolean; columns?: number }): Terminal | null {
  if (!stream.isTTY) return null
  return { columns: stream.columns ?? 80, bold: (text) => styleText('bold', text, { stream }) }
}

/** Aligns rows in columns. On a terminal, cuts long lines if `lastColumnMin` characters of the last column fit. */
export function renderTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  terminal: Terminal | null = null,
): string {
  const all = [head, ...rows].map((row) => row.map(escapeControl))
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const lines = all
    .map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join('  '))
    .map((line) => line.trimEnd())
  if (terminal === null) return lines.map((line) => `${line}\n`).join('')
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const [first = '', ...others] = lines.map((line) => endWithin(line, terminal.columns, before))
  return [terminal.bold(first), ...others].map((line) => `${line}\n`).join('')
}

export const renderColumns = <Row>(
  rows: readonly Row[],
  columns: Readonly<Record<string, (row: Row) => string>>,
  terminal: Terminal | null = null,
): string =>
  renderTable(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((cell) => cell(row))),
    terminal,
  )

const lastColumnMin = 20

const endWithin = (line: string, columns: number, before: number): string =>
  columns - before >= lastColumnMin ? boundText(line, columns) : line

/** Also replaces each line break or run of blanks by one blank. */
export function truncateToOneLine(text: string, charsMax: number): string {
  return boundText(text.replace(/\s+/g, ' ').trim(), charsMax)
}

// Characters that control the terminal, change the direction of writing, or have no width.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what this is about
const unprintable = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** Escapes characters by which a text could move the terminal's cursor or hide a line. */
export function escapeControl(text: string): string {
  return text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

export const escapeControlInLines = (text: string): string => text.split('\n').map(escapeControl).join('\n')

/** Renders the first lines, each cut and safe for a terminal, and the number of further lines. */
export function renderFirstLines(lines: readonly string[], linesMax: number): string {
  const more = lines.length > linesMax ? [`... and ${lines.length - linesMax} more`] : []
  return [...lines.slice(0, linesMax), ...more]
    .map((line) => `${escapeControl(truncateToOneLine(line, 400))}\n`)
    .join('')
}

export const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** `1 record`, `2 records`. */
export function pluralize(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}

export const quoteForShell = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
