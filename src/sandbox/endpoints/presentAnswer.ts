import type { LiveSettings } from '../sandboxSettings.ts'
import { errorShapes } from './errorShape.ts'
import { type Answer, Problem } from './problemAnswer.ts'

/**
 * Says an answer as is set: the body of a refusal, and the form of Retry-After.
 *
 * @param toldUs the time that the service believes it is
 */
export function presentAnswer(answer: Answer, live: LiveSettings, toldUs: number): Answer {
  const { body, headers } = answer
  const retryAfter = headers['retry-after']
  const timed = retryAfter === undefined ? answer : { ...answer, headers: timedHeaders(headers, live, toldUs) }
  if (!(body instanceof Problem)) return timed
  const { errorShape, unauthorizedShape } = live
  const name = answer.status === 401 && unauthorizedShape !== 'same' ? unauthorizedShape : errorShape
  const { contentType, body: shaped } = errorShapes[name]
  return { ...timed, contentType, body: shaped(body) }
}

/** @see RFC 9110, 10.2.3 */
function timedHeaders(headers: Record<string, string>, { retryAfterForm }: LiveSettings, toldUs: number) {
  const { 'retry-after': seconds, ...others } = headers
  if (retryAfterForm === 'none') return others
  return retryAfterForm === 'seconds' ? headers : { ...others, 'retry-after': later(toldUs, Number(seconds)) }
}

/** A date has whole seconds: the next, or it would name a moment too early. */
function later(us: number, seconds: number): string {
  return new Date((Math.ceil(us / 1_000_000) + seconds) * 1000).toUTCString()
}
