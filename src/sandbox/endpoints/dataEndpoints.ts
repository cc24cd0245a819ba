import type { Exchange, Outcome, Parts } from '../exchange.ts'
import { decideCourse, pollCourse } from '../processing/course.ts'
import { isoTime, toldUs } from '../sandboxClock.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { findTransaction, type StoredTransaction } from '../storage/findStored.ts'
import { downAnswer, duplicate, readBody, unknownCustomer, unknownId, usedBefore } from './apiRefusals.ts'
import { ok } from './problemAnswer.ts'
import { submissionSchema } from './recordSchemas.ts'

/** POST /api/v1/data. @see docs/interface.md, 4.2 */
export async function submitData(parts: Parts, exchange: Exchange, client: string): Promise<Outcome> {
  const down = downAnswer(parts, client)
  if (down) return { answer: down }
  const live = parts.live(client)
  const read = readBody(parts, exchange, client, submissionSchema(live))
  if (read.kind === 'invalid') return { answer: read.answer }
  const { customerId, data } = read.value
  const transactionId = live.ownIds === 'taken' ? read.value.transactionId : undefined
  const accepted = (id: string, us: number) => acceptedAnswer(id, us, live)
  const refusal =
    unknownCustomer(parts, customerId, client) ??
    (await usedBefore(parts, exchange, client, (before) => accepted(before.transactionId ?? '', before.appliedUs))) ??
    (transactionId === undefined ? undefined : await takenId(parts, exchange, client, transactionId))
  if (refusal) return { answer: refusal }
  const acceptedUs = parts.clock.nowUs()
  const position = parts.draws.next(client)
  const id = transactionId ?? inForm(parts.draws.id('transaction', client, position), live.transactionIdForm)
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
  if (polled === undefined) return { answer: unknownId(parts, 'transaction', exchange.id, client) }
  return { answer: ok(statusOf(polled.found, polled.nowUs, parts.live(client))), fault: polled.fault }
}

/** An id is the client's own: another may choose the same. */
async function takenId(parts: Parts, exchange: Exchange, client: string, transactionId: string) {
  await exchange.lock(`transaction ${client} ${transactionId}`)
  const taken = await findTransaction(parts.pool, client, transactionId)
  return taken && duplicate(parts, `the transaction id ${transactionId}`, client)
}

function acceptedAnswer(transactionId: string, us: number, live: LiveSettings) {
  return ok({ transactionId, status: 'accepted', timestamp: isoTime(toldUs(us, live)) })
}

/** An id of another form, made from a uuid. */
function inForm(uuid: string, form: LiveSettings['transactionIdForm']): string {
  switch (form) {
    case 'uuid':
      return uuid
    case 'digits':
      return BigInt(`0x${uuid.replaceAll('-', '').slice(0, 24)}`).toString()
    case 'odd':
      return `tx/${uuid.slice(0, 18)} +ü%2F?#`
    default:
      return form satisfies never
  }
}

function statusOf(found: StoredTransaction, nowUs: number, live: LiveSettings) {
  const { id, acceptedUs, doneUs, held, outcome, errorCode } = found
  if (held || nowUs < doneUs) {
    const isEarly = nowUs < (acceptedUs + doneUs) / 2
    return { transactionId: id, status: isEarly ? live.firstStatus : 'pending' }
  }
  const code = errorCode !== null && live.errorCodeShown ? { errorCode } : {}
  return { transactionId: id, status: outcome, result: resultOf(found, live), ...code }
}

function resultOf({ customerId, doneUs }: StoredTransaction, live: LiveSettings) {
  const result = { customerId, processedAt: isoTime(toldUs(doneUs, live)) }
  const shapes = { object: result, absent: undefined, text: JSON.stringify(result), list: [result] }
  return shapes[live.resultShape]
}
