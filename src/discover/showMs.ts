/** Milliseconds for people: `12 ms`, `1.5 s`. */
export const showMs = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`)
