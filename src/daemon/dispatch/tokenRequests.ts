import { type ClaimedRequest, endOfRequest } from '../../model.ts'
import { emptyOutcome, type OutcomeToWrite } from './outcomeWriter.ts'

export interface TokenRequestsDeps {
  /** @returns null if fewer than `freeMin` requests are free */
  claimTokenRequest(freeMin: number): Promise<ClaimedRequest | null>
  writeOutcome(work: OutcomeToWrite): Promise<void>
}

/** Below this limit, a token is fetched only if a second request is free to use the token. */
const smallLimit = 10

/** Makes token requests within the budget. */
export class TokenRequests {
  readonly #deps: TokenRequestsDeps
  /** The limit in use, which may be lower than this instance's. */
  limit: number

  constructor(deps: TokenRequestsDeps, limit: number) {
    this.#deps = deps
    this.limit = limit
  }

  /** True if a token and a request never fit into one window. */
  isOneAtATime(): boolean {
    return this.limit === 1
  }

  /** @returns `not-now` if the request did not leave */
  async spend<Answered extends { answer: { kind: 'response' } | { kind: 'no-answer'; sent: boolean } }>(
    request: (mayLeave: () => boolean) => Promise<Answered | null>,
    need: 'missing' | 'renewal',
  ): Promise<Answered | 'not-now'> {
    if (need === 'renewal' && this.isOneAtATime()) return 'not-now'
    const claimed = await this.#deps.claimTokenRequest(this.limit < smallLimit ? Math.min(2, this.limit) : 1)
    if (claimed === null) return 'not-now'
    const { requestId } = claimed
    const answered = await request(claimed.mayLeave)
    const end = endOfRequest(answered === null ? null : answered.answer)
    if (end === 'unsent') void this.#deps.writeOutcome({ ...emptyOutcome, unsentRequests: [requestId] })
    if (end === 'answered') void this.#deps.writeOutcome({ ...emptyOutcome, answeredRequests: [requestId] })
    return answered ?? 'not-now'
  }
}
