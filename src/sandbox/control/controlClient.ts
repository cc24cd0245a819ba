import { z } from 'zod'
import type { Clients } from '../clients.ts'

/** A client's id; one that is not known is refused, because a misspelt one would look like one that has done nothing. */
export function knownClient(clients: Clients) {
  return z.string().refine((id) => clients.has(id), `there is no such client; there are ${clients.ids.join(', ')}`)
}

/** Reads a query that may name a client, as all of /_sandbox/ that concerns clients; null where it names none. */
export function readQuery<T extends z.ZodRawShape>(clients: Clients, query: unknown, shape: T) {
  return z.strictObject({ ...shape, client: knownClient(clients).nullable().default(null) }).parse(query)
}
