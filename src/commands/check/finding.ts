/** What came of looking at one thing, and what to do next. */
export interface Finding {
  what: string
  mark: Mark
  message: string
}

/** `warning`: it works, and may not be what was meant. `not-asked`: nobody could look, so it is neither well nor wrong. */
export type Mark = keyof typeof marks

/** How each mark is shown, all with one width, and the value of `ok` in JSON. */
export const marks = {
  ok: { shown: 'ok      ', ok: true },
  warning: { shown: 'WARNING ', ok: true },
  problem: { shown: 'PROBLEM ', ok: false },
  'not-asked': { shown: '-       ', ok: null },
} as const satisfies Record<string, { shown: string; ok: boolean | null }>

/** How far a clock is ahead of this host's, at least and at most: two clocks are never read at the same moment. */
export interface ClockReading {
  /** As in "the clock of … is". */
  whose: string
  leastMs: number
  mostMs: number
}

/** When a certificate ends. */
export interface CertificateEnd {
  whose: string
  endsMs: number
}

/** Clocks and certificates that were seen on the way; they are judged at the end. */
export interface Noticed {
  clocks: ClockReading[]
  certificates: CertificateEnd[]
}

/** Returns a finding; several sentences stand on a line each. */
export const finding = (what: string, mark: Mark, ...lines: readonly string[]): Finding => ({
  what,
  mark,
  message: lines.join('\n'),
})

/** Returns a finding for something that could not be looked at. */
export const notAsked = (what: string, why: string): Finding => finding(what, 'not-asked', `not asked: ${why}`)
