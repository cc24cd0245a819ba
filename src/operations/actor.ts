const reasonMax = 1_000

/** The problem with a reason, to be read after the option's name; null if there is none. Pure. */
export function reasonProblem(reason: string): string | null {
  if (reason === '') return 'must say why'
  return reason.length > reasonMax ? `is longer than ${reasonMax} characters` : null
}

/** Control characters, those that turn the direction of writing or take no room: what no name needs, and what a line of a log must not have. */
const unfit = /[\p{Cc}\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/u

/** The longest name, in characters. */
export const nameMax = 100

/** A person's name as the log can have it; null if it cannot. */
export function personName(text: string): string | null {
  const name = text.replace(/ +/g, ' ').trim()
  return name === '' || name.length > nameMax || unfit.test(name) || !name.isWellFormed() ? null : name
}
