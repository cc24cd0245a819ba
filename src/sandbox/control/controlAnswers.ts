import type { FastifyReply } from 'fastify'
import { findUnstorablePart } from '../endpoints/parseExactJson.ts'
import { jsonContentType, refusalAnswer, sendAnswer } from '../endpoints/problemAnswer.ts'
import { pageBytesMax, type RowsPage } from './listRows.ts'

export class BodyWrong extends Error {
  override name = 'BodyWrong'
}

/** @throws BodyWrong if it is not JSON, or cannot be stored */
export function parseJsonBody(body: unknown): unknown {
  let value: unknown
  try {
    value = JSON.parse(String(body ?? ''))
  } catch {
    throw new BodyWrong('The body is not JSON.')
  }
  const beyond = findUnstorablePart(value)
  if (beyond !== undefined) throw new BodyWrong(`${beyond.field}: ${beyond.detail}`)
  return value
}

export function sendRefusal(reply: FastifyReply, status: number, detail: string): FastifyReply {
  return sendAnswer(reply, refusalAnswer(status, detail))
}

/** Refuses instead of leaving out rows, because a test counts them. */
export function sendRows(reply: FastifyReply, { rows, isCut }: RowsPage): FastifyReply {
  if (isCut)
    return sendRefusal(reply, 413, `The rows have more than ${pageBytesMax} bytes. Ask for fewer with ?limit=.`)
  return reply.type(jsonContentType).send(`{"rows":[${rows.join(',')}]}`)
}
