import type { FastifyReply } from 'fastify'
import type { Answer } from './problemAnswer.ts'

/** Sends an answer as it is, with no fault applied to it. */
export function sendAnswer(reply: FastifyReply, { status, headers, contentType, body }: Answer): FastifyReply {
  return reply.code(status).headers(headers).header('content-type', contentType).send(JSON.stringify(body))
}
