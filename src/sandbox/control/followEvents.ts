import { once } from 'node:events'
import type { FastifyReply } from 'fastify'
import type pg from 'pg'
import type { Parts } from '../exchange.ts'
import type { OrderEvents } from '../storage/orderEvents.ts'
import { eventLine, eventLines } from './shownRows.ts'

/** A reader that falls further behind is disconnected, or its lines would fill the memory. */
const behindMaxBytes = 16_000_000

/** Events remembered as written, so that an event that is both read and announced is written once. */
const rememberedMax = 10_000

/**
 * Writes one JSON line for every event on the queue and then for each new one, until the reader goes or the sandbox closes.
 *
 * @param whose a client's id; null for all
 */
export async function followEvents(
  { parts, pool, events }: { parts: Parts; pool: pg.Pool; events: OrderEvents },
  whose: string | null,
  reply: FastifyReply,
): Promise<void> {
  const gone = new AbortController()
  reply.hijack()
  reply.raw.on('close', () => gone.abort())
  reply.raw.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' })
  reply.raw.flushHeaders()
  const over = AbortSignal.any([gone.signal, parts.closing])
  over.addEventListener('abort', () => reply.raw.end())
  const written = new Set<string>()
  const write = (id: string, line: string) => {
    if (!written.has(id) && !reply.raw.writableEnded) reply.raw.write(`${line}\n`)
    written.add(id)
    if (written.size > rememberedMax) written.delete(written.values().next().value as string)
  }
  // Watch first, read after: what is committed in between is seen twice and written once.
  events.watch((created) => {
    if (reply.raw.writableLength > behindMaxBytes) reply.raw.destroy()
    for (const { client, event } of created) {
      if (whose === null || whose === client) write(event.id, eventLine(event.id, 'created', JSON.stringify(event)))
    }
  }, over)
  try {
    for await (const batch of eventLines(pool, { limit: 1_000_000, client: whose })) {
      if (over.aborted) return
      for (const { id, line } of batch) write(id, line)
      if (reply.raw.writableNeedDrain) await once(reply.raw, 'drain', { signal: over })
    }
  } catch {
    reply.raw.destroy() // the reader has gone, or the database: what comes next would have a gap before it
  }
}
