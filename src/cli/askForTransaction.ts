import type { Config } from '../config.ts'
import type { TransactionRef } from '../ledger/transactionIds.ts'
import type { Answer, ServiceRequest } from '../model.ts'
import { resources } from '../resources.ts'
import { decideToken } from '../service/decideToken.ts'
import { readAnswer } from '../service/reading.ts'
import { slotsWithinMs, withBorrowedClient } from './borrowedClient.ts'
import type { CommandContext } from './context.ts'
import { showDuration } from './time.ts'

/** What the service says of a transaction that a person names. */
export interface Testimony {
  kind: /** It knows it: it is completed, failed or pending. */
    | 'known'
    /** It does not know it, or speaks of another. */
    | 'denied'
    /** It could not be asked, or its answer says nothing of it. */
    | 'silent'
  message: string
}

/** Asks the service once for a transaction, with slots of the budget. */
export async function askForTransaction(
  { signal, stderr }: Pick<CommandContext, 'signal' | 'stderr'>,
  config: Config,
  transaction: TransactionRef,
): Promise<Testimony> {
  const asked = await withBorrowedClient<Testimony>(config, {
    signal,
    askAnyway: false,
    requestsMax: 2,
    onWait: () => void stderr.write('Waiting for a free slot of the budget, to ask the service …\n'),
    async ask(client, mayLeave) {
      const token = await client.requestToken(mayLeave)
      if (token === null) return tooLate
      if (token.token === null) return { kind: 'silent', message: decideToken(token.answer).detail }
      const answer = await client.send(questionFor(transaction), token.token.accessToken, mayLeave)
      return answer === null ? tooLate : readTestimony(answer, transaction)
    },
  })
  if (asked.kind === 'asked') return asked.result
  const message = `no slot of the budget was free for ${showDuration(slotsWithinMs)}: outboxd status says when there is one`
  return { kind: 'silent', message }
}

const tooLate: Testimony = { kind: 'silent', message: 'the slot’s time had run out before the request could leave' }

const questionFor = ({ resource, transactionId }: TransactionRef): ServiceRequest => ({
  endpoint: resources[resource].ask,
  body: transactionId,
  idempotencyKey: null,
})

/** What an answer to a GET says of the transaction that was asked for. Pure. */
export function readTestimony(answer: Answer, { resource, transactionId }: TransactionRef): Testimony {
  const { transaction, summary } = readAnswer(answer, resource)
  if (transaction === null)
    return answer.kind === 'response' && answer.status === 404
      ? {
          kind: 'denied',
          message: `the service does not know ${resources[resource].noun} ${transactionId}: ${summary}`,
        }
      : { kind: 'silent', message: summary }
  const { status, errorCode } = transaction
  if (transaction.transactionId !== null && transaction.transactionId !== transactionId)
    return {
      kind: 'denied',
      message: `asked for ${transactionId}, the service answers about ${transaction.transactionId}`,
    }
  if (!knownStatuses.has(status))
    return {
      kind: 'silent',
      message: `the service says an unknown status of ${transactionId}: ${status.slice(0, 100)}`,
    }
  const code = status === 'failed' && errorCode !== null ? ` with ${errorCode}` : ''
  return {
    kind: 'known',
    message: `the service says that ${resources[resource].noun} ${transactionId} is ${status}${code}`,
  }
}

/** docs/interface.md, 3.1 and 3.2; whether `accepted` is one of them is not shown. */
const knownStatuses: ReadonlySet<string> = new Set(['accepted', 'pending', 'completed', 'failed'])
