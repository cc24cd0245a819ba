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

/** Writes a line of CSV (RFC 4180) without formulas. */
export const csvLine = (cells: readonly (string | null | undefined)[]): string =>
  stringify([cells.map((cell) => escapeFormulas(cell ?? ''))], { quoted_match: /[;\t|]/ })
