import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { jsonType } from '../endpoints/problemAnswer.ts'

/**
 * Answers `{"rows":[…]}` as the batches come, each only when the reader has taken the one before.
 *
 * @param batches rows as JSON text; the first is read before anything is answered, so that its fault is still a status
 */
export async function sendRows(reply: FastifyReply, batches: AsyncGenerator<string[]>): Promise<FastifyReply> {
  const first = await batches.next()
  return reply.type(jsonType).send(Readable.from(document(first.value ?? [], batches)))
}

async function* document(first: string[], more: AsyncGenerator<string[]>): AsyncGenerator<string> {
  yield `{"rows":[${first.join(',')}`
  let comma = first.length > 0 ? ',' : ''
  for await (const rows of more) {
    if (rows.length > 0) yield `${comma}${rows.join(',')}`
    comma = rows.length > 0 ? ',' : comma
  }
  yield ']}'
}
