const reasonMax = 1_000

/** Returns the problem as words that follow the option's name; null if the reason is valid. */
export function findReasonProblemClause(reason: string): string | null {
  if (reason === '') return 'must not be empty'
  return reason.length > reasonMax ? `is longer than ${reasonMax} characters` : null
}

/** Matches control, direction and zero-width characters, which logs must not have. */
const unfitCharacter = /[\p{Cc}\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u

export const personNameMax = 100

export function normalizePersonName(text: string): string | null {
  const name = text.replace(/ +/g, ' ').trim()
  return name === '' || name.length > personNameMax || unfitCharacter.test(name) || !name.isWellFormed() ? null : name
}
