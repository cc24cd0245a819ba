import type { Claims } from '../../ledger/claims.ts'
import type { PollClaim, Submission } from '../../model/submission.ts'

export interface RequestInFlight {
  /** Null for a question. */
  submission: Submission | null
  poll: PollClaim | null
}

/** The requests whose outcome is not written yet. */
export class InFlight {
  readonly #running = new Map<RequestInFlight, Promise<void>>()
  readonly #onRoom: () => void

  constructor(onRoom: () => void) {
    this.#onRoom = onRoom
  }

  /** @param ending resolves when the outcome is written, and never rejects */
  follow(request: RequestInFlight, ending: () => Promise<void>): void {
    this.#running.set(request, Promise.resolve())
    const ended = ending().then(() => {
      this.#running.delete(request)
      this.#onRoom()
    })
    this.#running.set(request, ended)
  }

  count(): number {
    return this.#running.size
  }

  polls(): PollClaim[] {
    return [...this.#running.keys()].flatMap(({ poll }) => poll ?? [])
  }

  /** Submissions that are sent, not polled. */
  sending(): Submission[] {
    return [...this.#running.keys()].flatMap(({ submission, poll }) =>
      submission === null || poll !== null ? [] : submission,
    )
  }

  /** Submissions whose outcome is not written, polled ones too. */
  held(): Submission[] {
    return [...this.#running.keys()].flatMap(({ submission }) => submission ?? [])
  }

  async drained(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }
}

/** A claim whose COMMIT was not answered in time. None of its records was or will be sent. */
export interface LostClaim {
  id: string
  submissions: readonly (Submission & { requestId: string })[]
  /** True if it is the trial of the breaker. */
  isTrial: boolean
  sinceMs: number
}

/**
 * Keeps claims until their COMMIT is known to have succeeded or failed. A COMMIT can hang while a disk or a standby is
 * away, and take effect much later.
 */
export class LostClaims {
  readonly #lost = new Map<string, LostClaim>()
  readonly #claims: Pick<Claims, 'requeueUnsentClaim'>

  constructor(claims: Pick<Claims, 'requeueUnsentClaim'>) {
    this.#claims = claims
  }

  remember(claim: LostClaim): void {
    this.#lost.set(claim.id, claim)
  }

  forget(id: string): void {
    this.#lost.delete(id)
  }

  has(id: string): boolean {
    return this.#lost.has(id)
  }

  list(): LostClaim[] {
    return [...this.#lost.values()]
  }

  /** Queues the records of these claims again, as far as the fate of the claims is known. @returns those claims */
  async recover(): Promise<LostClaim[]> {
    const recovered: LostClaim[] = []
    for (const claim of this.list()) {
      const ids = claim.submissions.map(({ id }) => id)
      if (!(await this.#claims.requeueUnsentClaim(claim.id, ids))) continue
      this.#lost.delete(claim.id)
      recovered.push(claim)
    }
    return recovered
  }
}
