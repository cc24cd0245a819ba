import type { PollJob, Submission } from '../../model.ts'

/** A submission that is worked on: a record being sent, or the poll of one. */
export interface Held {
  submission: Submission
  job: PollJob | null
}

export interface InHandDeps {
  /** Called if the end of a request failed. */
  onFailed(error: unknown): void
  /** Called when a request is through. */
  onRoom(): void
}

export type InHand = ReturnType<typeof createInHand>

/** Keeps the requests on the wire, and those whose outcome is being written. */
export function createInHand({ onFailed, onRoom }: InHandDeps) {
  const inFlight = new Set<Promise<void>>()
  const all = new Map<Submission, Held & { transactionId: string | null }>()
  const polls = () => [...all.values()].flatMap(({ submission, job }) => (job === null ? [] : [{ submission, job }]))
  return {
    /**
     * Counts a request as in flight from now until `finishing` has ended, which writes its outcome.
     *
     * @param held null for a question that is no submission's
     */
    follow(held: Held | null, finishing: () => Promise<void>): void {
      if (held !== null) all.set(held.submission, { ...held, transactionId: held.submission.transactionId })
      const attempt = finishing().catch(onFailed)
      inFlight.add(attempt)
      void attempt.then(() => {
        inFlight.delete(attempt)
        if (held !== null) all.delete(held.submission)
        onRoom()
      })
    },
    /** The service has given it an id, or had before. */
    gotId(submission: Submission, transactionId: string | null): void {
      const held = all.get(submission)
      if (held !== undefined) held.transactionId = transactionId
    },
    inFlight: (): number => inFlight.size,
    pollsInHand: (): PollJob[] => polls().map(({ job }) => job),
    /** How many polls are of transactions that are polled rarely. */
    rarePolls: (): number => polls().filter(({ submission }) => submission.polledRarely).length,
    /** The records that are being sent. */
    sending: (): Submission[] =>
      [...all.values()].filter(({ job }) => job === null).map(({ submission }) => submission),
    /** What is worked on, each with the id that the service has given by now. */
    held: (): { submission: Submission; transactionId: string | null }[] => [...all.values()],
    /** Resolves when nothing is in flight. */
    async drained(): Promise<void> {
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

/**
 * Keeps the claims of which nobody knows whether they took place. A COMMIT can hang for as long as a disk or a standby is
 * away, and come true long after we gave up on its answer. So each is looked for until it is found or known to be void.
 *
 * @param unclaim returns whether the claim is settled: given back, or void. False while its COMMIT may still come true
 */
export function createLostClaims(nowMs: () => number, unclaim: (claimId: string) => Promise<boolean>) {
  const lost = new Map<string, LostClaim>()
  return {
    /** Its COMMIT is on its way: until the answer comes nobody knows whether it took place. */
    remember: (id: string, submissions: readonly Submission[]) =>
      void lost.set(id, { id, submissions, sinceMs: nowMs() }),
    /** Its answer came. */
    forget: (id: string) => void lost.delete(id),
    has: (id: string): boolean => lost.has(id),
    /** Looks for each once: what was committed after all is given back, what is known to be void is forgotten. */
    async recover(): Promise<void> {
      for (const id of [...lost.keys()]) if (await unclaim(id)) lost.delete(id)
    },
    list: (): LostClaim[] => [...lost.values()],
    /** Their submissions, none of which has an id of the service's. */
    held: (): { submission: Submission; transactionId: null }[] =>
      [...lost.values()].flatMap((claim) =>
        claim.submissions.map((submission) => ({ submission, transactionId: null })),
      ),
  }
}
