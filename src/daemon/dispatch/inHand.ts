import type { PollJob, Submission } from '../../model.ts'

/** A submission that is worked on: a record being sent, or the poll of one. */
export interface Held {
  submission: Submission
  job: PollJob | null
}

/** The requests on the wire, and those whose outcome is being written. */
export interface InHand {
  /**
   * Counts a request as in flight from now until `finishing` has ended, which writes its outcome.
   *
   * @param held null for a question that is no submission's
   */
  follow(held: Held | null, finishing: () => Promise<void>): void
  /** The service has given it an id, or had before. */
  gotId(submission: Submission, transactionId: string | null): void
  inFlight(): number
  pollsInHand(): PollJob[]
  /** How many of them are of transactions that are polled rarely. */
  rarePolls(): number
  /** The records that are being sent. */
  sending(): Submission[]
  /** What is worked on, each with the id that the service has given by now. */
  held(): { submission: Submission; transactionId: string | null }[]
  /** Resolves when nothing is in flight. */
  drained(): Promise<void>
}

export interface InHandDeps {
  /** What was to end a request failed. */
  onFailed(error: unknown): void
  /** A request is through. */
  onRoom(): void
}

export function createInHand({ onFailed, onRoom }: InHandDeps): InHand {
  const inFlight = new Set<Promise<void>>()
  const all = new Map<Submission, Held & { transactionId: string | null }>()
  const polls = () => [...all.values()].flatMap(({ submission, job }) => (job === null ? [] : [{ submission, job }]))
  return {
    follow(held, finishing) {
      if (held !== null) all.set(held.submission, { ...held, transactionId: held.submission.transactionId })
      const attempt = finishing().catch(onFailed)
      inFlight.add(attempt)
      void attempt.then(() => {
        inFlight.delete(attempt)
        if (held !== null) all.delete(held.submission)
        onRoom()
      })
    },
    gotId(submission, transactionId) {
      const held = all.get(submission)
      if (held !== undefined) held.transactionId = transactionId
    },
    inFlight: () => inFlight.size,
    pollsInHand: () => polls().map(({ job }) => job),
    rarePolls: () => polls().filter(({ submission }) => submission.polledRarely).length,
    sending: () => [...all.values()].filter(({ job }) => job === null).map(({ submission }) => submission),
    held: () => [...all.values()],
    async drained() {
      while (inFlight.size > 0) await Promise.all(inFlight)
    },
  }
}
