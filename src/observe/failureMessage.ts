import { showError } from './redact.ts'

/** What an SQLSTATE, or its class, or a system's word means. The longest beginning that fits is taken. */
const meanings: readonly (readonly [RegExp, string])[] = [
  [/^42501$/, 'a right is missing'],
  [/^42P01$/, 'a table is missing'],
  [/^42703$/, 'a column is missing'],
  [/^3F000$/, 'a schema is missing'],
  [/^(57014|25P0\d)$/, 'the database took too long'],
  [/^(55P03|40)/, 'another session holds a lock'],
  [/^25006$/, 'the database only lets us read'],
  [/^28/, 'the database does not let us in'],
  [/^53/, 'the database is short of resources'],
  [/^(22|23|P0)/, 'the database refuses the data'],
  [/^(08|57P|E[A-Z]+$)/, 'the database cannot be reached'],
]

/**
 * Says in words what went wrong, without the client's data: what kind of failure it is, and the redacted message with
 * its SQLSTATE, for whoever mends it.
 */
export function failureMessage(error: unknown): string {
  const { message, code, class: name } = showError(error)
  if (code === undefined) return message || name // an error of ours, which says in words what is wrong
  const meaning = meanings.find(([pattern]) => pattern.test(code))?.[1] ?? name
  return `${meaning}: ${message} (${code})`
}
