import type { Claims } from '../../ledger/claims.ts'
import { endOfRequest, isHostFault } from '../../model/service.ts'
import type { TokenAnswer } from '../../service/client.ts'
import type { TokenFetchReason, TokenSource } from '../../service/tokens.ts'
import type { DaemonContext } from '../context.ts'
import { emptyOutcome, type OutcomeWriter } from './outcomeWriter.ts'

/** Below this limit, a token is fetched only if a second request is free to use the token. */
const smallLimit = 10

/** Makes token requests within the budget. */
export class TokenRequests implements TokenSource {
  readonly #daemon: DaemonContext
  readonly #claims: Pick<Claims, 'claimTokenRequest'>
  readonly #outcomes: Pick<OutcomeWriter, 'add'>
  /** The limit in use, which may be lower than this instance's. */
  limit: number

  constructor(daemon: DaemonContext, claims: Pick<Claims, 'claimTokenRequest'>, outcomes: Pick<OutcomeWriter, 'add'>) {
    this.#daemon = daemon
    this.#claims = claims
    this.#outcomes = outcomes
    this.limit = daemon.config.rateLimit.requests
  }

  isOneAtATime(): boolean {
    return this.limit === 1
  }

  renewSecret(): boolean {
    return this.#daemon.credentials.renew(['secret'])
  }

  async fetch(need: TokenFetchReason): Promise<TokenAnswer | 'not-now'> {
    if (need === 'renewal' && this.isOneAtATime()) return 'not-now'
    const claimed = await this.#claims.claimTokenRequest(this.limit < smallLimit ? Math.min(2, this.limit) : 1)
    if (claimed === null) return 'not-now'
    const { requestId, mayLeave } = claimed
    const { client, telemetry } = this.#daemon
    const answered = await client.requestToken(mayLeave)
    const end = endOfRequest(answered === null ? null : answered.answer)
    if (end === 'unsent') void this.#outcomes.add({ ...emptyOutcome, unsentRequests: [requestId] })
    if (end === 'answered') void this.#outcomes.add({ ...emptyOutcome, answeredRequests: [requestId] })
    if (answered === null) return 'not-now'
    telemetry.requestDone('token', answered.answer)
    return isHostFault(answered.answer) ? 'not-now' : answered
  }
}
