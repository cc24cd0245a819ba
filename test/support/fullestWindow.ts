/** The most requests that any half-open window of that length holds. */
export function fullestWindow(atMs: readonly number[], lengthMs: number): number {
  const sorted = atMs.toSorted((a, b) => a - b)
  return Math.max(0, ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + lengthMs).length))
}
