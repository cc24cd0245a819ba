/** Text as Postgres can hold it: NUL and half a surrogate pair, which it refuses, become U+FFFD. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}
