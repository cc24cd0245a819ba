import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Clients } from '../clients.ts'
import { beyondBounds, holdsNul } from '../endpoints/parseExactly.ts'
import { jsonType, problem, sendAnswer } from '../endpoints/problemAnswer.ts'

/** What the routes of /_sandbox/ share. */

/** The JSON of a body that jsonb cannot keep. */
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

/** A client's id. An unknown id is refused, because a misspelt one would look like a client without requests. */
export function knownClient(clients: Clients) {
  return z.string().refine((id) => clients.has(id), `there is no such client; there are ${clients.ids.join(', ')}`)
}

/** Reads a query that may name a client; `client` is null if it does not. */
export function readQuery<T extends z.ZodRawShape>(clients: Clients, query: unknown, shape: T) {
  return z.strictObject({ ...shape, client: knownClient(clients).nullable().default(null) }).parse(query)
}

/**
 * Answers `{"rows":[…]}` as the batches come, each only when the reader has taken the one before.
 *
 * @param batches rows as JSON text; the first batch is read before the answer begins, so that an error still is a status
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
