import { codeOf } from '../postgres/sqlState.ts'

/** An error that what a row holds may be the reason of: a value that is none of the type, a function that raises. */
export const mayBeRowsFault = (error: unknown): boolean => /^(22|P0)/.test(String(codeOf(error)))

/**
 * Those of these rows that a question fails for: all are asked about at once, then by halves, until each is alone.
 *
 * @param most so many are enough
 * @throws what no row can be to blame for
 */
export async function failingRows(
  ids: readonly string[],
  ask: (ids: readonly string[]) => Promise<unknown>,
  most = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  if (ids.length === 0) return []
  try {
    await ask(ids)
    return []
  } catch (error) {
    if (!mayBeRowsFault(error)) throw error
    if (ids.length === 1) return [...ids]
  }
  const half = ids.length >> 1
  const first = await failingRows(ids.slice(0, half), ask, most)
  return first.length >= most ? first : [...first, ...(await failingRows(ids.slice(half), ask, most - first.length))]
}
