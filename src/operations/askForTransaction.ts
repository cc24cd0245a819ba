import { setTimeout as wait } from 'node:timers/promises'
import { boundText, textCharsMax } from '../boundText.ts'
import { systemClock } from '../clock.ts'
import type { Config } from '../config.ts'
import { borrowSlots, historyDiffersMessage, type LedgerFault, type SlotLoan } from '../ledger/slotLoans.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import { type Answer, isSameId, type ServiceRequest } from '../model.ts'
import { serviceResources } from '../resources.ts'
import { createServiceClient, type ServiceClient } from '../service/client.ts'
import { readGetAnswer, readPauseFromTokenAnswer } from '../service/readAnswer.ts'
import { computeRequestsEndAfterMs } from '../slotDurations.ts'

export const slotWaitMaxMs = 10_000

export interface TransactionAnswer {
  kind: /** The service knows the transaction, with whatever status. */
    | 'known'
    /** The service does not know the transaction, or answers about a different one. */
    | 'denied'
    /** The service could not be asked, or did not say. */
    | 'silent'
  message: string
}

interface TransactionAskOptions {
  signal: AbortSignal
  onWait(): void
  slotWaitMs?: number
}

export async function askServiceForTransaction(
  config: Config,
  transaction: TransactionRef,
  { signal, onWait, slotWaitMs }: TransactionAskOptions,
): Promise<TransactionAnswer> {
  const asked = await withBudgetedServiceClient(config, {
    signal,
    mayAskWithoutLedger: false,
    requestsMax: 2,
    onWait,
    slotWaitMs,
    onCertificate() {},
    async ask(client, mayLeave): Promise<TransactionAnswer> {
      const token = await client.requestToken(mayLeave)
      if (token === null) return noSlot
      if (token.token === null) return { kind: 'silent', message: readPauseFromTokenAnswer(token.answer).detail }
      const told = await client.send(questionFor(transaction), token.token.accessToken, mayLeave)
      return told === null ? noSlot : readTransactionAnswer(told, transaction)
    },
  })
  if (asked.kind === 'history-differs') return { kind: 'silent', message: historyDiffersMessage }
  if (asked.kind === 'unknown')
    return { kind: 'silent', message: `${ledgerFaultClauses[asked.why]}, so free slots are unknown` }
  return asked.kind === 'asked' ? asked.result : noSlot
}

const noSlot: TransactionAnswer = {
  kind: 'silent',
  message: 'no slot of the budget became free in time: `outboxd status` says when one is',
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

const slotsAgainMs = 500

export type AskOutcome<T> =
  | { kind: 'asked'; result: T }
  | { kind: 'none-free' }
  | { kind: 'history-differs' }
  | { kind: 'unknown'; why: LedgerFault }

export const ledgerFaultClauses: Record<LedgerFault, string> = {
  unreadable: 'the ledger cannot be read',
  'read-only': 'the ledger cannot be written',
  'standby-awaited': 'COMMITs in the database wait for a synchronous standby',
}

interface BudgetedAskOptions<T> {
  signal: AbortSignal
  mayAskWithoutLedger: boolean
  onWait(): void
  /** Fewer if the rate limit is lower. */
  requestsMax: number
  /** `slotWaitMaxMs` by default. */
  slotWaitMs?: number | undefined
  onCertificate(expiresAtMs: number): void
  /** @param mayLeave true while the slots are valid */
  ask(client: ServiceClient, mayLeave: () => boolean, requests: number): Promise<T>
}

/** @throws ServiceMismatch if the ledger belongs to another service */
export async function withBudgetedServiceClient<T>(
  config: Config,
  options: BudgetedAskOptions<T>,
): Promise<AskOutcome<T>> {
  const { loan, ageMs } = await waitForSlots(config, options)
  if (loan.kind === 'none-free' || loan.kind === 'history-differs') return loan
  if (loan.kind === 'unknown' && !options.mayAskWithoutLedger) return loan
  const { service } = config
  const client = createServiceClient({
    service,
    credentials: () => service,
    maxInFlight: 1,
    clock: systemClock,
    onCertificate: options.onCertificate,
  })
  const { requestTimeoutMs } = service
  const mayLeave = () =>
    loan.kind !== 'loan' || ageMs() < computeRequestsEndAfterMs(config.rateLimit.windowMs, requestTimeoutMs)
  try {
    return { kind: 'asked', result: await options.ask(client, mayLeave, permitsFor(config, options)) }
  } finally {
    await client.close()
    if (loan.kind === 'loan') await loan.giveBack()
  }
}

const permitsFor = ({ rateLimit }: Config, { requestsMax }: { requestsMax: number }) =>
  Math.min(requestsMax, rateLimit.requests)

async function waitForSlots(
  config: Config,
  {
    signal,
    onWait,
    requestsMax,
    slotWaitMs = slotWaitMaxMs,
  }: Pick<BudgetedAskOptions<unknown>, 'signal' | 'onWait' | 'requestsMax' | 'slotWaitMs'>,
): Promise<{ loan: SlotLoan; ageMs: () => number }> {
  const { windowMs } = config.rateLimit
  const permits = permitsFor(config, { requestsMax })
  const requestsEndAfterMs = computeRequestsEndAfterMs(windowMs, requestsMax * config.service.requestTimeoutMs)
  const elapsedMs = systemClock.stopwatch()
  for (let turn = 0; ; turn++) {
    const ageMs = systemClock.stopwatch()
    const loan = await borrowSlots(config.databaseUrl, {
      permits,
      requestsEndAfterMs,
      service: config.service,
    })
    if (loan.kind !== 'none-free' || elapsedMs() > slotWaitMs || signal.aborted) return { loan, ageMs }
    if (turn === 0) onWait()
    await wait(slotsAgainMs)
  }
}
