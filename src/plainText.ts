import { styleText } from 'node:util'
import { boundText } from './boundText.ts'

/** Cuts and styles text for a terminal. Text for a file or a pipe stays whole and plain. */
export interface Terminal {
  columns: number
  /** Changes nothing if NO_COLOR is set. */
  style(format: TextFormat, text: string): string
}

export type TextFormat = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'blue' | 'cyan' | 'magenta' | 'gray'

/** Null if the stream is not a terminal. */
export function terminalOf(stream: NodeJS.WritableStream & { isTTY?: boolean; columns?: number }): Terminal | null {
  if (!stream.isTTY) return null
  return { columns: stream.columns ?? 80, style: (format, text) => styleText(format, text, { stream }) }
}

/** On a terminal: which format a cell gets, if any. */
export type CellFormat = (column: string, cell: string) => TextFormat | undefined

/** Aligns rows in columns. On a terminal, cuts long lines if `lastColumnMin` characters of the last column fit. */
export function renderTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  terminal: Terminal | null = null,
  formatOf: CellFormat = () => undefined,
): string {
  const all = [head, ...rows].map((row) => row.map(escapeControl))
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const left = (terminal?.columns ?? 0) - widths.slice(0, -1).reduce((sum, width) => sum + width + 2, 0)
  const line = (row: readonly string[], style: (column: number, padded: string) => string) => {
    const cells = row.map((cell, i) => {
      if (i < row.length - 1) return style(i, cell.padEnd(widths[i] ?? 0))
      return style(i, left >= lastColumnMin ? boundText(cell, left) : cell)
    })
    return `${cells.join('  ').trimEnd()}\n`
  }
  const [first = [], ...others] = all
  const plain = (_: number, text: string) => text
  if (terminal === null) return all.map((row) => line(row, plain)).join('')
  const styled = (column: number, text: string) => {
    const format = formatOf(head[column] ?? '', text.trimEnd())
    return format === undefined ? text : terminal.style(format, text)
  }
  return [terminal.style('bold', line(first, plain).trimEnd()), '\n', ...others.map((row) => line(row, styled))].join(
    '',
  )
}

export const renderColumns = <Row>(
  rows: readonly Row[],
  columns: Readonly<Record<string, (row: Row) => string>>,
  terminal: Terminal | null = null,
  formatOf?: CellFormat,
): string =>
  renderTable(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((cell) => cell(row))),
    terminal,
    formatOf,
  )

const lastColumnMin = 20

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
