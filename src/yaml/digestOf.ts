import { createHash } from 'node:crypto'

/**
 * A short digest of what a document means: the order of keys, spaces and comments do not change it.
 *
 * @param value plain values, arrays, objects and maps
 */
export function digestOf(value: unknown): string {
  const canonical = JSON.stringify(value, (_, each: unknown) => {
    const entries = each instanceof Map ? [...each] : isRecord(each) ? Object.entries(each) : null
    return entries === null ? each : Object.fromEntries(entries.toSorted(byKey))
  })
  return createHash('sha256').update(canonical).digest('hex').slice(0, digestChars)
}

const digestChars = 12

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const byKey = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : a > b ? 1 : 0)
