import type { FastifyReply } from 'fastify'
import { beyondBounds, holdsNul } from '../endpoints/bodyBounds.ts'
import { problem } from '../endpoints/problemAnswer.ts'
import { sendAnswer } from '../endpoints/sendAnswer.ts'

/** What the routes of /_sandbox/ share. */

/** A body is JSON that jsonb cannot keep. */
export class BeyondBounds extends Error {
  override name = 'BeyondBounds'
}

/** @throws SyntaxError for what is not JSON, BeyondBounds: the error handler of the routes answers both with 400 */
export function readJson(body: unknown): unknown {
  const text = typeof body === 'string' ? body : ''
  const value = JSON.parse(text)
  const beyond = beyondBounds(value)
  if (beyond !== undefined) throw new BeyondBounds(`${beyond.field}: ${beyond.detail}`)
  if (holdsNul(text)) throw new BeyondBounds('The body must not contain the character U+0000.')
  return value
}

export function refuse(reply: FastifyReply, status: number, detail: string): FastifyReply {
  return sendAnswer(reply, problem(status, detail))
}
