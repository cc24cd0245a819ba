/** How the sandbox puts values into its SQL and takes them out: times are microseconds, on both ways. */

/** timestamptz to microseconds since 1970, exactly: extract() gives a numeric. */
export const us = (column: string) => `(extract(epoch from ${column}) * 1000000)::bigint`

/** Microseconds to timestamptz; the product is exact for the next two centuries (below 2^53). */
export const time = (column: string) => `timestamptz 'epoch' + ${column} * interval '1 microsecond'`

/** Postgres stores every character but this one. */
export function storable(text: string | null): string | null {
  return text?.replaceAll('\u0000', '\ufffd') ?? null
}
