import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Clients } from '../clients.ts'
import { findUnstorablePart, hasNul } from '../endpoints/parseExactly.ts'
import { jsonType, refusalAnswer, sendAnswer } from '../endpoints/problemAnswer.ts'

export class BeyondBounds extends Error {
  override name = 'BeyondBounds'
}

export function readJson(body: unknown): unknown {
  const text = typeof body === 'string' ? body : ''
  const value = JSON.parse(text)
  const beyond = findUnstorablePart(value)
  if (beyond !== undefined) throw new BeyondBounds(`${beyond.field}: ${beyond.detail}`)
  if (hasNul(text)) throw new BeyondBounds('The body must not contain the character U+0000.')
  return value
}

export function sendRefusal(reply: FastifyReply, status: number, detail: string): FastifyReply {
  return sendAnswer(reply, refusalAnswer(status, detail))
}

/** Refuses an unknown id, because a misspelt id would look like a client without requests. */
export function createClientIdSchema(clients: Clients) {
  return z
    .string()
    .refine((id) => clients.has(id), `there is no such client; the clients are ${clients.ids.join(', ')}`)
}

export function readQuery<T extends z.ZodRawShape>(clients: Clients, query: unknown, shape: T) {
  return z.strictObject({ ...shape, client: createClientIdSchema(clients).nullable().default(null) }).parse(query)
}

/** Streams `{"rows":[…]}`. Reads the first batch before the answer begins, so that an error is still an HTTP status. */
export async function streamRows(reply: FastifyReply, batches: AsyncGenerator<string[]>): Promise<FastifyReply> {
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
