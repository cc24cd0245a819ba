import { randomUUID } from 'node:crypto'
import { type Answer, type ServiceRequest, statusRow, type TrialVerdict } from '../model.ts'
import { type Resource, resources } from '../resources.ts'
import { pauseCall, sayAnswer } from './pauseCall.ts'

/** A question that changes nothing, whatever becomes of it: a GET for a transaction or order that does not exist. */
export function harmlessRequest(resource: Resource): ServiceRequest {
  return { endpoint: resources[resource].ask, body: randomUUID(), idempotencyKey: null }
}

/**
 * What the answer to a trial says, a poll or the harmless question. Pure.
 *
 * Whoever answers it with a success in JSON or with a refusal of the question is there again. Where the refusal may be a
 * gateway's own, as a bare 404, nobody can tell: the first record that goes alone after it will, and loses nothing.
 */
export function judgeTrial(answer: Answer): TrialVerdict {
  const pause = pauseCall(answer)
  if (answer.kind === 'no-answer') {
    const detail = `unanswered: ${answer.detail}`
    return { kind: 'pause', pause: pause ?? { reason: 'unreachable', askedMs: null, detail, ownWords: detail } }
  }
  if (pause !== null) return { kind: answer.status === 401 ? 'token-refused' : 'pause', pause }
  const { status, json } = answer
  const { get, outcome } = statusRow(status)
  if (outcome === 'rejected' || (get === 'answered' && json !== undefined)) return { kind: 'clear' }
  return { kind: 'pause', pause: { reason: 'unreachable', askedMs: null, ...sayAnswer(answer) } }
}

/**
 * Whether two answers say the same, but for what they quote of the question and for what changes from one answer to the
 * next: ids, times, numbers. Whoever answers an address that cannot exist as he answers the API's knows neither.
 */
export function saysTheSame(one: Answer, other: Answer): boolean {
  if (one.kind !== 'response' || other.kind !== 'response') return false
  return one.status === other.status && one.code === other.code && said(one.excerpt) === said(other.excerpt)
}

const said = (excerpt: string) =>
  excerpt
    .replace(/[^\s"'<>]*\/api\/v1[^\s"'<>]*/g, '#')
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}/gi, '#')
    .replace(/\d+/g, '#')
