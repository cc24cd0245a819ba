// Control characters, those that turn the direction of writing, and what no name needs.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what this is about
const unfit = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/

const namesMax = 100

/** A person's name as it can stand in the event log; null where it cannot. */
export function personName(text: string): string | null {
  const name = text.replace(/ +/g, ' ').trim()
  return name === '' || name.length > namesMax || unfit.test(name) || !name.isWellFormed() ? null : name
}
