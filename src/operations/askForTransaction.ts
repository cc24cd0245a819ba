import { setTimeout as wait } from 'node:timers/promises'
import { boundText, textCharsMax } from '../boundText.ts'
import { systemClock } from '../clock.ts'
import type { Config } from '../config.ts'
import { CommandRequests, historyDiffersMessage, type LedgerFault } from '../ledger/commandRequests.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import { type Answer, endOfRequest, isSameId, type ServiceRequest } from '../model/service.ts'
import { serviceResources } from '../resources.ts'
import { createServiceClient, type ServiceClient } from '../service/client.ts'
import { readGetAnswer, readPauseFromTokenAnswer } from '../service/readAnswer.ts'

export const requestWaitMaxMs = 10_000

export interface TransactionAnswer {
  kind: /** The service knows the transaction, with whatever status. */
    | 'known'
    /** The service does not know the transaction, or answers about a different one. */
    | 'denied'
    /** The service did not say. */
    | 'silent'
    /** The service was not asked. */
    | 'unasked'
  message: string
}

interface TransactionAskOptions {
  signal: AbortSignal
  /** Called once, if no request of the budget is free. */
  onWait(): void
  /** How long to wait for a free request; `requestWaitMaxMs` by default. */
  waitMaxMs?: number
  /** True for a single question of a person, which goes before the polls and submissions of the daemons. */
  goesFirst?: boolean
}

export async function askServiceForTransaction(
  config: Config,
  transaction: TransactionRef,
  options: TransactionAskOptions,
): Promise<TransactionAnswer> {
  const asking = { ...options, mayAskWithoutLedger: false, onCertificate() {} }
  try {
    return await withBudgetedServiceClient(config, asking, async (client, spend) => {
      const granted = await spend((mayLeave) => client.requestToken(mayLeave))
      if (granted === null) return noneFree
      const { answer, token } = granted
      if (token === null) return { kind: 'silent', message: readPauseFromTokenAnswer(answer).detail }
      const told = await spend((mayLeave) => client.send(questionFor(transaction), token.accessToken, mayLeave))
      return told === null ? noneFree : readTransactionAnswer(told, transaction)
    })
  } catch (error) {
    if (!(error instanceof BudgetUnknown)) throw error
    return { kind: 'unasked', message: error.message }
  }
}

const noneFree: TransactionAnswer = {
  kind: 'unasked',
  message: 'no request of the budget became free in time: `outboxd status` says when one is',
}

const questionFor = ({ resource, transactionId }: TransactionRef): ServiceRequest => ({
  endpoint: serviceResources[resource].ask,
  body: transactionId,
  idempotencyKey: null,
})

function readTransactionAnswer(answer: Answer, { resource, transactionId }: TransactionRef): TransactionAnswer {
  const { transaction, summary } = readGetAnswer(answer, resource)
  if (transaction === null)
    return answer.kind === 'response' && answer.status === 404
      ? {
          kind: 'denied',
          message: `the service does not know ${serviceResources[resource].noun} ${transactionId}: ${summary}`,
        }
      : { kind: 'silent', message: summary }
  const { status, errorCode } = transaction
  if (transaction.transactionId !== null && !isSameId(transaction.transactionId, transactionId))
    return {
      kind: 'denied',
      message: `asked for ${transactionId}, the service answered about ${transaction.transactionId}`,
    }
  const shown = boundText(status, textCharsMax.word)
  if (!knownStatuses.has(status))
    return { kind: 'silent', message: `the service gave ${transactionId} an unknown status: ${shown}` }
  const code = status === 'failed' && errorCode !== null ? ` with ${errorCode}` : ''
  const message = `the service says that ${serviceResources[resource].noun} ${transactionId} is ${status}${code}`
  return { kind: 'known', message }
}

/** The statuses in docs/reference/interface.md, 3.1 and 3.2, and `accepted`, which these do not exclude. */
const knownStatuses: ReadonlySet<string> = new Set(['accepted', 'pending', 'completed', 'failed'])

const claimAgainMs = 500

/** No request can be counted. */
export class BudgetUnknown extends Error {
  override name = 'BudgetUnknown'
  readonly why: LedgerFault | 'history-differs'
  constructor(why: BudgetUnknown['why']) {
    super(why === 'history-differs' ? historyDiffersMessage : `${ledgerFaultClauses[why]}, so the budget is unknown`)
    this.why = why
  }
}

const ledgerFaultClauses: Record<LedgerFault, string> = {
  unreadable: 'the ledger cannot be read',
  'read-only': 'the ledger cannot be written',
  'standby-awaited': 'COMMITs in the database wait for a synchronous standby',
}

/**
 * Makes a request once the budget has one free.
 *
 * @returns null if none became free in time
 * @throws BudgetUnknown
 */
export type SpendRequest = <A extends Answer | { answer: Answer }>(
  request: (mayLeave: () => boolean) => Promise<A | null>,
) => Promise<A | null>

interface BudgetedAskOptions extends TransactionAskOptions {
  mayAskWithoutLedger: boolean
  onCertificate(expiresAtMs: number): void
}

/** @throws ServiceMismatch if the ledger belongs to another service */
export async function withBudgetedServiceClient<T>(
  { databaseUrl, service }: Config,
  options: BudgetedAskOptions,
  work: (client: ServiceClient, spend: SpendRequest) => Promise<T>,
): Promise<T> {
  const { signal, onWait, waitMaxMs = requestWaitMaxMs, goesFirst = false, mayAskWithoutLedger } = options
  await using requests = new CommandRequests(databaseUrl, { name: 'outboxd check', ...service })
  const client = createServiceClient({
    service,
    credentials: () => service,
    maxInFlight: 1,
    clock: systemClock,
    onCertificate: options.onCertificate,
  })
  let hasWaited = false
  const spend: SpendRequest = async (request) => {
    const elapsedMs = systemClock.stopwatch()
    for (;;) {
      const claimed = await requests.tryClaim(service, goesFirst ? 'keep-place' : 'give-up')
      if (claimed.kind === 'no-limit' || (claimed.kind === 'unknown' && mayAskWithoutLedger)) return request(() => true)
      if (claimed.kind === 'unknown') throw new BudgetUnknown(claimed.why)
      if (claimed.kind === 'history-differs') throw new BudgetUnknown(claimed.kind)
      if (claimed.kind === 'request') {
        const answered = await request(claimed.mayLeave)
        await claimed.end(endOfRequest(answered !== null && 'answer' in answered ? answered.answer : answered))
        if (answered !== null) return answered
      }
      if (elapsedMs() > waitMaxMs || signal.aborted) return null
      if (!hasWaited) onWait()
      hasWaited = true
      await wait(claimAgainMs)
    }
  }
  try {
    return await work(client, spend)
  } finally {
    await client.close()
  }
}
