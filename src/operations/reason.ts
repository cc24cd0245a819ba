const reasonMost = 1_000

/** What is wrong with the reason that a person gives, to be read after its name; null where nothing is. Pure. */
export function reasonProblem(reason: string): string | null {
  if (reason === '') return 'must say why'
  return reason.length > reasonMost ? `is longer than ${reasonMost} characters` : null
}
