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

/** A claim whose COMMIT's answer did not come, or came too late to be sent: nothing of it was or will be on the wire. */
export interface LostClaim {
  id: string
  submissions: readonly Submission[]
  /** Since when it has been lost, on the clock of this host. */
  sinceMs: number
}

export interface LostClaims {
  /** Its COMMIT is on its way: until the answer comes nobody knows whether it took place. */
  remember(claimId: string, submissions: readonly Submission[]): void
  /** Its answer came. */
  forget(claimId: string): void
  has(claimId: string): boolean
  /** Looks for each once: what was committed after all is given back, what is known to be void is forgotten. */
  recover(): Promise<void>
  list(): LostClaim[]
}

/**
 * Keeps the claims of which nobody knows whether they took place. A COMMIT can hang for as long as a disk or a standby is
 * away, and come true long after we gave up on its answer. So each is looked for until it is found or known to be void.
 *
 * @param unclaim returns whether the claim is settled: given back, or void. False while its COMMIT may still come true
 */
export function createLostClaims(nowMs: () => number, unclaim: (claimId: string) => Promise<boolean>): LostClaims {
  const lost = new Map<string, LostClaim>()
  return {
    remember: (id, submissions) => void lost.set(id, { id, submissions, sinceMs: nowMs() }),
    forget: (id) => void lost.delete(id),
    has: (id) => lost.has(id),
    async recover() {
      for (const id of [...lost.keys()]) if (await unclaim(id)) lost.delete(id)
    },
    list: () => [...lost.values()],
  }
}
