/** How the rows at a position and just behind it compare with those that were taken there. */
export interface Sample {
  rows: number
  /** The ledger does not know their ids. */
  unknown: number
  /** Others than those that it knows. */
  another: number
  /** Edited since, or others of the same type and key. */
  edited: number
  /** All are known by when they were recorded, which never changes. */
  byTime: boolean
  /** The sequence has another file than when the position was reached: `restart identity`, `alter sequence … restart`. */
  sequenceChanged: boolean
}

/**
 * Judges whether the numbers of the table began anew since the position was reached, so that there are rows before it that
 * nobody has read. Edits of single rows must not look like that. Pure.
 *
 * - The sequence began anew, and most rows are not those that were: it is so. (Another option of a sequence changes its file, too.)
 * - It was set back by hand (setval), which leaves no trace; all rows are others by their times, which nobody edits: it is so.
 * - All rows differ, and nothing else says why: that is told, and nothing stops.
 */
export function testSample(sample: Sample): 'same' | 'differs' | 'anew' {
  const { rows, unknown, another, edited, byTime, sequenceChanged } = sample
  const differing = unknown + another + edited
  if (sequenceChanged && differing * 2 > rows) return 'anew'
  if (another + edited === 0 || differing < rows) return 'same'
  return byTime ? 'anew' : 'differs'
}
