import { stringify } from 'csv-stringify/sync'

/** Matches where a spreadsheet may begin a cell: at the start of the text, or after a separator. */
const cellStart = String.raw`(?:^|(?<=[,;\t|\r\n]))`
/** Matches how a formula begins, after any blanks and quotes. */
const formulaStart = String.raw`(?:[\s"']{0,1000}[=+\-@＝＋－＠]|'*[\t\r])`
const toMark = new RegExp(`${cellStart}(?=${formulaStart})`, 'g')
const marked = new RegExp(`${cellStart}'(?=${formulaStart})`, 'g')

const isNumber = (text: string) => /^-\d+(\.\d+)?$/.test(text)

export const escapeFormulas = (text: string): string => (isNumber(text) ? text : text.replace(toMark, "'"))

export const unescapeFormulas = (text: string): string => text.replace(marked, '')

/** Writes CSV (RFC 4180) without formulas. */
export function csvLines(rows: readonly Readonly<Record<string, string>>[], columns: readonly string[]): string {
  const cells = rows.map((row) => columns.map((name) => escapeFormulas(row[name] ?? '')))
  return stringify(cells, { quoted_match: /[;\t|]/ })
}

export const csvHeaderLine = (columns: readonly string[]): string =>
  csvLines([Object.fromEntries(columns.map((name) => [name, name]))], columns)
