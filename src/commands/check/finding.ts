export interface Finding {
  what: string
  mark: FindingMark
  message: string
}

/** `warning`: works but may not be intended. `not-asked`: could not be checked. */
export type FindingMark = keyof typeof findingMarks

export const findingMarks = {
  ok: { shown: 'ok      ', ok: true },
  warning: { shown: 'WARNING ', ok: true },
  problem: { shown: 'PROBLEM ', ok: false },
  'not-asked': { shown: '-       ', ok: null },
} as const satisfies Record<string, { shown: string; ok: boolean | null }>

/** A clock's lead over this host's clock, as a range, because two clocks cannot be read at once. */
export interface ClockReading {
  whose: string
  leastMs: number
  mostMs: number
}

export interface CertificateExpiry {
  whose: string
  expiresAtMs: number
}

export interface ClocksAndCertificates {
  clocks: ClockReading[]
  certificates: CertificateExpiry[]
}

export const makeFinding = (what: string, mark: FindingMark, ...lines: readonly string[]): Finding => ({
  what,
  mark,
  message: lines.join('\n'),
})

export const makeUncheckedFinding = (what: string, why: string): Finding =>
  makeFinding(what, 'not-asked', `not checked: ${why}`)
