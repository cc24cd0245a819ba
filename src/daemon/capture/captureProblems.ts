import type { CaptureTrouble } from '../../model.ts'

/** Tells what change capture could not do as one problem for each table. */
export function captureProblems(
  troubles: readonly CaptureTrouble[],
): { subject: string; detail: string; retryInMs: null }[] {
  const tables = Map.groupBy(troubles, ({ table }) => table)
  return [...tables].map(([subject, told]) => ({ subject, detail: told.map(sentence).join('; '), retryInMs: null }))
}

function sentence({ notes, hasUnknown, since, reason, insecure }: CaptureTrouble): string {
  if (insecure) return `SECURITY: ${reason}. Run install.sql again, then install() for each table`
  if (notes === 0) return `changes are not captured: ${reason}`
  const which = hasUnknown ? ', not all of them known' : ''
  return `changes were not captured since ${since}, ${notes} noted${which}: ${reason}`
}
