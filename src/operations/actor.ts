const reasonMax = 1_000

/** The problem with a reason, as the end of a sentence; null if there is none. */
export function reasonProblem(reason: string): string | null {
  if (reason === '') return 'must say why'
  return reason.length > reasonMax ? `is longer than ${reasonMax} characters` : null
}

/** Control, direction and zero-width characters, which no line of a log may have. */
const unfit = /[\p{Cc}\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u

export const nameMax = 100

/** A person's name as logs take it; null if it is not valid. */
export function personName(text: string): string | null {
  const name = text.replace(/ +/g, ' ').trim()
  return name === '' || name.length > nameMax || unfit.test(name) || !name.isWellFormed() ? null : name
}
