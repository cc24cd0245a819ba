import { stringify } from 'csv-stringify/sync'

/**
 * A place where a spreadsheet may begin a cell: the text's start, or after what separates cells in some language or import dialog. A
 * German or French Excel separates by semicolons, and a quote that does not begin a line quotes nothing there. What is calculated
 * begins with = + - @ (also in full width), whatever blanks and quotes stand before.
 */
const begins = String.raw`(?:^|(?<=[,;\t|\r\n]))`
const calculates = String.raw`(?:[\s"']{0,1000}[=+\-@＝＋－＠]|'*[\t\r])`
const toMark = new RegExp(`${begins}(?=${calculates})`, 'g')
const marked = new RegExp(`${begins}'(?=${calculates})`, 'g')

/** A negative number is one. */
const isNumber = (text: string) => /^-\d+(\.\d+)?$/.test(text)

/** Marks with an apostrophe each place of a text from which a spreadsheet would calculate. Pure. */
export const markFormulas = (text: string): string => (isNumber(text) ? text : text.replace(toMark, "'"))

/** Takes those marks off again. Pure. */
export const unmarkFormulas = (text: string): string => text.replace(marked, '')

/** Lines of a CSV (RFC 4180) that calculates nothing, whatever its cells hold; what may separate cells elsewhere is quoted. Pure. */
export function csvLines(rows: readonly Readonly<Record<string, string>>[], columns: readonly string[]): string {
  const cells = rows.map((row) => columns.map((name) => markFormulas(row[name] ?? '')))
  return stringify(cells, { quoted_match: /[;\t|]/ })
}

/** The first line of a CSV. Pure. */
export const csvHead = (columns: readonly string[]): string =>
  csvLines([Object.fromEntries(columns.map((name) => [name, name]))], columns)
