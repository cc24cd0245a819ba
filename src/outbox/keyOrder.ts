/**
 * Keeps the rows of each key in their order, as they are met in it: up to `lineMax` of one key go, and behind the first
 * that stays, all of them stay.
 *
 * @param held lines that must not go at all
 * @returns tells of the next row whether it goes, given whether anything else is against it
 */
export function createKeyOrder(
  lineMax: number,
  held: Iterable<string> = [],
): (line: string | null, mayGo: boolean) => boolean {
  const lengths = new Map([...held].map((line) => [line, Number.POSITIVE_INFINITY]))
  return (line, mayGo) => {
    if (line === null) return mayGo
    const length = lengths.get(line) ?? 0
    const goes = mayGo && length < lineMax
    lengths.set(line, goes ? length + 1 : Number.POSITIVE_INFINITY)
    return goes
  }
}
