import type { FastifyInstance } from 'fastify'
import type { ConsoleParts } from '../parts.ts'
import type { LiveNews } from './createLive.ts'

/** Bounds memory. One more ends the oldest, whose browser comes again. */
const streamsMax = 500
/** One more ends the session's oldest, so that no session takes all streams. */
const streamsPerSessionMax = 50
const topicsPerStreamMax = 4

/** Ends a stream whose reader is so far behind; its browser comes again. */
const behindMaxBytes = 64_000

/** A browser then comes again, and its sign-in is checked again. */
const streamMs = 600_000

/** Writing finds readers who left silently. */
const breathMs = 15_000

/**
 * The stream of server-sent events `version` and `trouble` at /live?on=TOPIC&on=TOPIC…, each with its topic.
 * @param closing aborted when the console ends
 */
export function liveRoutes(app: FastifyInstance, { live }: ConsoleParts, closing: AbortSignal): void {
  /** What ends each stream, and its session; the oldest first. */
  const streams = new Map<() => void, string>()

  function makeRoom(session: string): void {
    const own = session === '' ? [] : [...streams.keys()].filter((end) => streams.get(end) === session)
    const [oldest] = streams.keys()
    if (own.length >= streamsPerSessionMax) own[0]?.()
    else if (streams.size >= streamsMax) oldest?.()
  }

  app.get<{ Querystring: { on?: string | string[] } }>(
    '/live',
    { exposeHeadRoute: false, config: { isStream: true } },
    async (request, reply) => {
      const topics = [request.query.on ?? []].flat()
      if (topics.length === 0 || topics.length > topicsPerStreamMax || !topics.every((topic) => live.knows(topic)))
        return reply.code(404).type('text/plain; charset=utf-8').send('There is nothing of that name to follow.\n')
      if (closing.aborted)
        return reply.code(503).header('retry-after', 10).type('text/plain; charset=utf-8').send('The console ends.\n')
      const { session } = request.viewer
      makeRoom(session)
      const { raw } = reply.hijack()
      const destroy = () => {
        streams.delete(destroy)
        raw.destroy()
      }
      streams.set(destroy, session)
      raw.writeHead(200, {
        ...reply.getHeaders(),
        'content-type': 'text/event-stream; charset=utf-8',
        'x-accel-buffering': 'no',
      } as Record<string, string>)
      raw.write('retry: 2000\n\n')
      const tell = ({ kind, ...news }: LiveNews) => {
        if (raw.writableLength > behindMaxBytes) raw.destroy()
        else raw.write(`event: ${kind}\ndata: ${JSON.stringify(news)}\n\n`)
      }
      const stops = topics.map((topic) => live.follow(topic, tell))
      const breathing = setInterval(() => raw.write(':\n\n'), breathMs).unref()
      const end = () => raw.end()
      const ending = setTimeout(end, streamMs).unref()
      closing.addEventListener('abort', end)
      raw.once('close', () => {
        streams.delete(destroy)
        clearInterval(breathing)
        clearTimeout(ending)
        closing.removeEventListener('abort', end)
        for (const stop of stops) stop()
      })
    },
  )
}
