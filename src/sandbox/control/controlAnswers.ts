import type { FastifyReply } from 'fastify'
import { findUnstorablePart } from '../endpoints/parseExactJson.ts'
import { jsonContentType, refusalAnswer, sendAnswer } from '../endpoints/problemAnswer.ts'
import { pageBytesMax, type RowsPage } from './listRows.ts'

export class BodyWrong extends Error {
  override name = 'BodyWrong'
}

/** @throws BodyWrong if the body is not JSON, or has a part that Postgres cannot store */
export function parseJsonBody(body: unknown): unknown {
  let value: unknown
  try {
    value = JSON.parse(String(body ?? ''))
  } catch {
    throw new BodyWrong('The body is not JSON.')
  }
  const unstorable = findUnstorablePart(value)
  if (unstorable !== undefined) throw new BodyWrong(`${unstorable.field}: ${unstorable.detail}`)
  return value
}

export function sendRefusal(reply: FastifyReply, status: number, detail: string): FastifyReply {
  return sendAnswer(reply, refusalAnswer(status, detail))
}

/** Refuses if the rows are too large, instead of leaving out some, because tests count the rows. */
export function sendRowsOrRefusal(reply: FastifyReply, { rows, isCut }: RowsPage): FastifyReply {
  if (isCut)
    return sendRefusal(reply, 413, `The rows have more than ${pageBytesMax} bytes. Ask for fewer with ?limit=.`)
  return reply.type(jsonContentType).send(`{"rows":[${rows.join(',')}]}`)
}
