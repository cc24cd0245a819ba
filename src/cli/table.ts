/** Lays rows out in columns, two spaces apart; the last column is as wide as it is. */
export function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((row) => row.map(escapeControl))
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all
    .map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** The text's beginning, and an ellipsis where there is more. */
export function truncate(text: string, most: number): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > most ? `${line.slice(0, most - 1).toWellFormed()}…` : line
}

// Control characters, and those that turn the direction of writing.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what this is about
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Makes a text safe for a terminal: what the service or the ERP wrote must not move the cursor or hide a line. */
export function escapeControl(text: string): string {
  return text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** `1 record`, `2 records`. */
export function pluralize(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`
}
