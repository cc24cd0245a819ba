import type { Exchange, Outcome, Parts } from '../exchange.ts'
import { decideCourse } from '../processing/processing.ts'
import { isoTime } from '../sandboxClock.ts'
import { pollCourse } from '../scenario/pollCourse.ts'
import { findTransaction, type StoredTransaction } from '../storage/findStored.ts'
import { downAnswer, duplicate, unknownCustomer, unknownId, usedBefore } from './apiRefusals.ts'
import { ok } from './problemAnswer.ts'
import { readBody } from './requestBody.ts'
import { submissionSchema } from './requestSchemas.ts'

/** POST /api/v1/data. @see docs/interface.md, 4.2 */
export async function submitData(parts: Parts, exchange: Exchange, client: string): Promise<Outcome> {
  const down = downAnswer(parts, client)
  if (down) return { answer: down }
  const read = readBody(parts, exchange, client, submissionSchema, 'total_amount')
  if (read.kind === 'invalid') return { answer: read.answer }
  const { customerId, data, transactionId } = read.value
  const refusal =
    unknownCustomer(parts, customerId, client) ??
    (await usedBefore(parts, exchange, client, (before) => accepted(before.transactionId ?? '', before.appliedUs))) ??
    (transactionId === undefined ? undefined : await takenId(parts, exchange, client, transactionId))
  if (refusal) return { answer: refusal }
  const acceptedUs = parts.clock.nowUs()
  const position = parts.draws.next(client)
  const id = transactionId ?? parts.draws.id('transaction', client, position)
  const course = decideCourse(parts, client, position, acceptedUs, data.field2)
  const statuses = parts.scripts.statuses(exchange, client)
  const effect = { kind: 'transaction' as const, id, customerId, acceptedUs, position, statuses, ...course }
  return { answer: accepted(id, acceptedUs), effect }
}

/** GET /api/v1/data/{transactionId}. @see docs/interface.md, 4.3 */
export async function readTransaction(parts: Parts, exchange: Exchange, client: string): Promise<Outcome> {
  const down = downAnswer(parts, client)
  if (down) return { answer: down }
  const polled = await pollCourse(parts, { of: 'transaction', id: exchange.id, client }, () =>
    findTransaction(parts.pool, client, exchange.id),
  )
  if (polled === undefined) return { answer: unknownId(parts, `transaction ${exchange.id}`, client) }
  return { answer: ok(statusOf(polled.found, polled.nowUs)), fault: polled.fault }
}

/** An id is the client's own: another may choose the same. */
async function takenId(parts: Parts, exchange: Exchange, client: string, transactionId: string) {
  await exchange.lock(`transaction ${client} ${transactionId}`)
  const taken = await findTransaction(parts.pool, client, transactionId)
  return taken && duplicate(parts, `the transaction id ${transactionId}`, client)
}

function accepted(transactionId: string, us: number) {
  return ok({ transactionId, status: 'accepted', timestamp: isoTime(us) })
}

function statusOf({ id, customerId, doneUs, held, outcome, errorCode }: StoredTransaction, nowUs: number) {
  if (held || nowUs < doneUs) return { transactionId: id, status: 'pending' }
  const result = { customerId, processedAt: isoTime(doneUs) }
  return { transactionId: id, status: outcome, result, ...(errorCode === null ? {} : { errorCode }) }
}
