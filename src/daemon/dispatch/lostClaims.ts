import type { Submission } from '../../model.ts'

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

export interface LostClaimsDeps {
  nowMs(): number
  /** @returns whether it is over with the claim: given back, or void. False while its COMMIT may still come true */
  unclaim(claimId: string): Promise<boolean>
}

/**
 * The claims that nobody knows of whether they took place. A COMMIT can hang for as long as a disk or a standby is
 * away, and come true long after we gave up on its answer: each is looked for until it is found or known to be void.
 */
export function createLostClaims({ nowMs, unclaim }: LostClaimsDeps): LostClaims {
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
