/** A moment of the database, an SQL expression, as a column in epoch milliseconds; a span of time in milliseconds. */
export const epochMs = (time: string): string => `extract(epoch from ${time})::float8 * 1000`

/** A moment as a value for SQL; null where there is none. */
export const isoTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())
