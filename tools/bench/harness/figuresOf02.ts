/**
 * What the poll schedule of outboxd 0.2 reached in the simulation: `npm run bench:simulate -- --seeds 3 --schedule learned`
 * at commit 63615d78. It fitted a distribution with 224 bins and a prior, explored, and searched the lowest price that fits.
 * Seconds, if nothing else is said.
 */
export const figuresOf02: Record<string, FiguresOf02> = {
  'constant 30 s ± 10 %': {
    recordsPerMinute: 49.6,
    idleDelay: 1.0,
    load: { 20: 31.3, 30: 32.9, 38: 35.6, 44: 39.8, 48: 56.5 },
    burst: { 30: 32.1, 100: 75.4, 300: 196.5, 1000: 617.5 },
  },
  'log-normal 20 s, σ 0.6': {
    recordsPerMinute: 49.3,
    idleDelay: 1.8,
    load: { 20: 28.5, 30: 33.6, 38: 47.9, 44: 61.2, 48: 89.6 },
    burst: { 30: 28.9, 100: 79.4, 300: 203.7, 1000: 637.4 },
  },
  'humps 2-5 s, 120-300 s': {
    recordsPerMinute: 49.1,
    idleDelay: 1.9,
    load: { 20: 47.0, 30: 53.3, 38: 86.1, 44: 164.5, 48: 317.7 },
    burst: { 30: 39.7, 100: 90.8, 300: 224.0, 1000: 710.2 },
  },
  'exponential 20 s': {
    recordsPerMinute: 49.5,
    idleDelay: 2.2,
    load: { 20: 23.9, 30: 30.7, 38: 49.4, 44: 65.6, 48: 94.6 },
    burst: { 30: 30.0, 100: 80.3, 300: 204.9, 1000: 640.6 },
  },
}

export interface FiguresOf02 {
  /** While more records wait than can be sent. */
  recordsPerMinute: number
  /** Mean time from done to known at six records a minute. */
  idleDelay: number
  /** By records a minute: mean time from commit to known. */
  load: Record<number, number>
  /** By records that are committed at one moment: mean time from commit to known. */
  burst: Record<number, number>
}
