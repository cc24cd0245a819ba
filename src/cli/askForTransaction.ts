import { boundText, textMax } from '../boundText.ts'
import type { Config } from '../config.ts'
import type { TransactionRef } from '../ledger/transactions.ts'
import { type Answer, isSameId, type ServiceRequest } from '../model.ts'
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
  context: Pick<CommandContext, 'signal' | 'stderr'>,
  config: Config,
  transaction: TransactionRef,
): Promise<Testimony> {
  const onWait = () => void context.stderr.write('Waiting for a free slot of the budget, to ask the service …\n')
  const [testimony] = await askForTransactions(config, [transaction], { signal: context.signal, onWait })
  return testimony === undefined || testimony.kind === 'unasked' ? noSlot : testimony
}

/** What the service says, or that its turn has not come: no slot was free, or the slot's time was up. */
export type AskedTestimony = Testimony | { kind: 'unasked' }

/**
 * Asks the service once for each of a few transactions, one after the other, with slots of the budget and one token.
 *
 * @returns what it says of each, in their order
 */
export async function askForTransactions(
  config: Config,
  transactions: readonly TransactionRef[],
  { signal, onWait }: { signal: AbortSignal; onWait(): void },
): Promise<AskedTestimony[]> {
  const asked = await withBorrowedClient<AskedTestimony[]>(config, {
    signal,
    askAnyway: false,
    requestsMax: 1 + transactions.length,
    onWait,
    onCertificate() {},
    async ask(client, mayLeave, requests) {
      const token = await client.requestToken(mayLeave)
      if (token === null) return transactions.map(() => unasked)
      const { answer } = token
      if (token.token === null)
        return transactions.map(() => ({ kind: 'silent', message: decideToken(answer).detail }) as const)
      const { accessToken } = token.token
      const said: AskedTestimony[] = []
      for (const transaction of transactions) {
        const isPaid = said.length < Math.max(requests - 1, 1)
        const told = isPaid ? await client.send(questionFor(transaction), accessToken, mayLeave) : null
        said.push(told === null ? unasked : readTestimony(told, transaction))
      }
      return said
    },
  })
  return asked.kind === 'asked' ? asked.result : transactions.map(() => unasked)
}

const unasked = { kind: 'unasked' } as const

const noSlot: Testimony = {
  kind: 'silent',
  message: `no slot of the budget was free for ${showDuration(slotsWithinMs)}: outboxd status says when there is one`,
}

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
  if (transaction.transactionId !== null && !isSameId(transaction.transactionId, transactionId))
    return {
      kind: 'denied',
      message: `asked for ${transactionId}, the service answers about ${transaction.transactionId}`,
    }
  if (!knownStatuses.has(status))
    return {
      kind: 'silent',
      message: `the service says an unknown status of ${transactionId}: ${boundText(status, textMax.word)}`,
    }
  const code = status === 'failed' && errorCode !== null ? ` with ${errorCode}` : ''
  return {
    kind: 'known',
    message: `the service says that ${resources[resource].noun} ${transactionId} is ${status}${code}`,
  }
}

/** docs/interface.md, 3.1 and 3.2; whether `accepted` is one of them is not shown. */
const knownStatuses: ReadonlySet<string> = new Set(['accepted', 'pending', 'completed', 'failed'])
