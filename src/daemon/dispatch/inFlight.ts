import type { Claims } from '../../ledger/claims.ts'
import type { PollClaim, Submission } from '../../model/submission.ts'

interface InFlight {
  /** Null for a question. */
  submission: Submission | null
  poll: PollClaim | null
}

export function createInFlightTracker({ onFailed, onRoom }: { onFailed(error: unknown): void; onRoom(): void }) {
  const running = new Map<InFlight, Promise<void>>()
  return {
    /** @param finishing resolves when the outcome is written */
    follow(request: InFlight, finishing: () => Promise<void>): void {
      running.set(request, Promise.resolve())
      const finished = finishing()
        .catch(onFailed)
        .then(() => {
          running.delete(request)
          onRoom()
        })
      running.set(request, finished)
    },
    count: (): number => running.size,
    polls: (): PollClaim[] => [...running.keys()].flatMap(({ poll }) => poll ?? []),
    sending: (): Submission[] =>
      [...running.keys()].flatMap(({ submission, poll }) => (submission === null || poll !== null ? [] : submission)),
    /** Submissions whose outcome is not written. */
    held: (): Submission[] => [...running.keys()].flatMap(({ submission }) => submission ?? []),
    async drained(): Promise<void> {
      while (running.size > 0) await Promise.all(running.values())
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
 * Keeps claims until their COMMIT is known to have succeeded or failed. A COMMIT can hang while a disk or a standby is
 * away, and take effect much later.
 */
export function createLostClaimStore(nowMs: () => number, claims: Pick<Claims, 'requeueUnsentClaim'>) {
  const lost = new Map<string, LostClaim>()
  return {
    remember: (id: string, submissions: readonly Submission[]) =>
      void lost.set(id, { id, submissions, sinceMs: nowMs() }),
    forget: (id: string) => void lost.delete(id),
    has: (id: string): boolean => lost.has(id),
    async recover(): Promise<void> {
      for (const id of [...lost.keys()]) if (await claims.requeueUnsentClaim(id)) lost.delete(id)
    },
    list: (): LostClaim[] => [...lost.values()],
  }
}
