import type { FastifyReply } from 'fastify'
import { problem } from './problemAnswer.ts'

/** What the routes of /_sandbox/ share. */

/** @throws SyntaxError for what is not JSON, which the error handler of the routes answers 400 */
export function readJson(body: unknown): unknown {
  return JSON.parse(typeof body === 'string' ? body : '')
}

export function refuse(reply: FastifyReply, status: number, detail: string): FastifyReply {
  const { contentType, body } = problem(status, detail)
  return reply.code(status).header('content-type', contentType).send(JSON.stringify(body))
}
