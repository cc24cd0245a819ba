import type { WantedRequests } from '../model.ts'

/** For how many requests there are permits: those in hand, and those of the slots that were taken. */
export function permitsInHand(wanted: WantedRequests, slots: readonly { permits: number }[]): number {
  const inHand = wanted.submissions + wanted.polls + wanted.rarePolls - wanted.permits
  return inHand + slots.reduce((sum, slot) => sum + slot.permits, 0)
}

/**
 * How many of the permits go to submissions. Where there are fewer than were asked for, submissions come first, as the
 * dispatcher has already weighed them against the polls; polls keep what they want, up to half.
 *
 *     permits   wanted: submissions, polls   to submissions
 *        10                10,    0               10
 *        10                 4,    6                4
 *         6                 8,    2                4
 *         6                 8,    8                3
 *         1                 8,    8                0
 */
export function permitsForSubmissions({ submissions, polls }: WantedRequests, permits: number): number {
  return Math.min(submissions, Math.max(0, permits - Math.min(polls, Math.ceil(permits / 2))))
}

/** While nothing has proven that the last pauses are over: one record where it is ours to prove it, and none otherwise. */
export function wantedUntilProven<W extends WantedRequests>(wanted: W, isOursToProve: boolean): W {
  const submissions = isOursToProve ? 1 : 0
  return { ...wanted, submissions, permits: Math.min(wanted.permits, submissions + wanted.polls) }
}
