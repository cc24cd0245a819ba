/** What came of looking at one thing, and what to do next. */
export interface Finding {
  what: string
  mark: Mark
  message: string
}

/**
 * `warning`: it works, and may not be what was meant. `not-asked`: nobody could look, so it is neither well nor wrong, and
 * nobody may take it for a success.
 */
export type Mark = 'ok' | 'warning' | 'problem' | 'not-asked'

/** What stands before a finding for people to read, all as wide. */
export const shownMarks: Readonly<Record<Mark, string>> = {
  ok: 'ok      ',
  warning: 'WARNING ',
  problem: 'PROBLEM ',
  'not-asked': '-       ',
}

/** What `ok` says of a finding in JSON. */
export const okOf: Readonly<Record<Mark, boolean | null>> = {
  ok: true,
  warning: true,
  problem: false,
  'not-asked': null,
}

/** A finding for something that could not be looked at. */
export const notAsked = (what: string, why: string): Finding => ({
  what,
  mark: 'not-asked',
  message: `not asked: ${why}`,
})
