export interface Finding {
  what: string
  mark: Mark
  message: string
}

/** `warning`: works, but may not be intended. `not-asked`: could not be looked at. */
export type Mark = keyof typeof marks

/** How each mark is shown, and its value of `ok` in JSON. */
export const marks = {
  ok: { shown: 'ok      ', ok: true },
  warning: { shown: 'WARNING ', ok: true },
  problem: { shown: 'PROBLEM ', ok: false },
  'not-asked': { shown: '-       ', ok: null },
} as const satisfies Record<string, { shown: string; ok: boolean | null }>

/** How far a clock is ahead of this host's. Two clocks are never read at the same moment, so it is a range. */
export interface ClockReading {
  /** Follows "the clock of". */
  whose: string
  leastMs: number
  mostMs: number
}

export interface CertificateEnd {
  whose: string
  endsMs: number
}

/** Clocks and certificates seen by the other looks; they are judged last. */
export interface Noticed {
  clocks: ClockReading[]
  certificates: CertificateEnd[]
}

export const finding = (what: string, mark: Mark, ...lines: readonly string[]): Finding => ({
  what,
  mark,
  message: lines.join('\n'),
})

export const notAsked = (what: string, why: string): Finding => finding(what, 'not-asked', `not asked: ${why}`)
