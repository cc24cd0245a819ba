import type { PollJob } from '../../model.ts'

export interface TouchingDeps {
  pollsInHand(): PollJob[]
  /** Says that they are still being worked on. */
  touch(jobs: readonly PollJob[]): Promise<void>
}

/** Keeps the polls in hand from being given to others. */
export interface Touching {
  /** One round. @returns after how many milliseconds to begin the next */
  runOnce(): Promise<number>
}

/** The queue takes a job for abandoned after 10 s. */
const everyMs = 3_000

export function createTouching({ pollsInHand, touch }: TouchingDeps): Touching {
  return {
    async runOnce() {
      const jobs = pollsInHand()
      if (jobs.length > 0) await touch(jobs)
      return everyMs
    },
  }
}
