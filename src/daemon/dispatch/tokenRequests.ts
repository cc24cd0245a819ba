import type { Claims } from '../../ledger/claims.ts'
import { endOfRequest } from '../../model/service.ts'
import { emptyOutcome, type OutcomeWriter } from './outcomeWriter.ts'

/** Below this limit, a token is fetched only if a second request is free to use the token. */
const smallLimit = 10

/** Makes token requests within the budget. */
export class TokenRequests {
  readonly #claims: Pick<Claims, 'claimTokenRequest'>
  readonly #outcomes: Pick<OutcomeWriter, 'add'>
  /** The limit in use, which may be lower than this instance's. */
  limit: number

  constructor(claims: Pick<Claims, 'claimTokenRequest'>, outcomes: Pick<OutcomeWriter, 'add'>, limit: number) {
    this.#claims = claims
    this.#outcomes = outcomes
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
    const claimed = await this.#claims.claimTokenRequest(this.limit < smallLimit ? Math.min(2, this.limit) : 1)
    if (claimed === null) return 'not-now'
    const { requestId } = claimed
    const answered = await request(claimed.mayLeave)
    const end = endOfRequest(answered === null ? null : answered.answer)
    if (end === 'unsent') void this.#outcomes.add({ ...emptyOutcome, unsentRequests: [requestId] })
    if (end === 'answered') void this.#outcomes.add({ ...emptyOutcome, answeredRequests: [requestId] })
    return answered ?? 'not-now'
  }
}
