import type { PollJob, Submission } from '../../model.ts'

export interface Held {
  submission: Submission
  job: PollJob | null
}

export interface InFlightDeps {
  onFailed(error: unknown): void
  onRoom(): void
}

export type InFlightRequests = ReturnType<typeof createInFlightRequests>

export function createInFlightRequests({ onFailed, onRoom }: InFlightDeps) {
  const running = new Set<Promise<void>>()
  const all = new Map<Submission, Held & { transactionId: string | null }>()
  const polls = () => [...all.values()].flatMap(({ submission, job }) => (job === null ? [] : [{ submission, job }]))
  return {
    /**
     * @param finishing writes the outcome
     * @param held null for a question that belongs to no submission
     */
    follow(held: Held | null, finishing: () => Promise<void>): void {
      if (held !== null) all.set(held.submission, { ...held, transactionId: held.submission.transactionId })
      const attempt = finishing().catch(onFailed)
      running.add(attempt)
      void attempt.then(() => {
        running.delete(attempt)
        if (held !== null) all.delete(held.submission)
        onRoom()
      })
    },
    gotId(submission: Submission, transactionId: string | null): void {
      const held = all.get(submission)
      if (held !== undefined) held.transactionId = transactionId
    },
    count: (): number => running.size,
    polls: (): PollJob[] => polls().map(({ job }) => job),
    rarePolls: (): number => polls().filter(({ submission }) => submission.polledRarely).length,
    sending: (): Submission[] =>
      [...all.values()].filter(({ job }) => job === null).map(({ submission }) => submission),
    held: (): { submission: Submission; transactionId: string | null }[] => [...all.values()],
    async drained(): Promise<void> {
      while (running.size > 0) await Promise.all(running)
    },
  }
}

/** A claim whose COMMIT was not answered in time. None of its records was or will be sent. */
export interface LostClaim {
  id: string
  submissions: readonly Submission[]
  sinceMs: number
}

/**
 * A COMMIT can hang while a disk or a standby is away, and take effect long after.
 *
 * @param requeueUnsentClaim returns true once the claim is given back or void
 */
export function createLostClaimStore(nowMs: () => number, requeueUnsentClaim: (claimId: string) => Promise<boolean>) {
  const lost = new Map<string, LostClaim>()
  return {
    remember: (id: string, submissions: readonly Submission[]) =>
      void lost.set(id, { id, submissions, sinceMs: nowMs() }),
    forget: (id: string) => void lost.delete(id),
    has: (id: string): boolean => lost.has(id),
    async recover(): Promise<void> {
      for (const id of [...lost.keys()]) if (await requeueUnsentClaim(id)) lost.delete(id)
    },
    list: (): LostClaim[] => [...lost.values()],
    held: (): { submission: Submission; transactionId: null }[] =>
      [...lost.values()].flatMap((claim) =>
        claim.submissions.map((submission) => ({ submission, transactionId: null })),
      ),
  }
}
