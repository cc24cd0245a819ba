import type { FastifyInstance } from 'fastify'
import type { ConsoleParts } from '../parts.ts'
import type { LiveNews } from './createLive.ts'

/** Less than the memory for them would be felt. One more ends the oldest, whose browser comes again. */
const streamsMax = 500
/** More than a person looks at. One more ends the oldest of the session, so that no session takes all streams. */
const streamsPerSessionMax = 50
/** A page follows one. Each list that is followed is compared with each step that a record takes. */
const topicsPerStreamMax = 4

/** Who reads so slowly is let go; its browser comes again. */
const behindMaxBytes = 64_000

/** Then a browser comes again, and is asked again who it is. */
const streamMs = 600_000

/** A reader who is gone without a word is noticed by what cannot be written to it. */
const breathMs = 15_000

/**
 * The stream of server-sent events at /live?on=TOPIC&on=TOPIC…: `version` or `trouble`, each with the topic as JSON.
 *
 * @param closing aborted when the console ends: the streams end with it
 */
export function liveRoutes(app: FastifyInstance, { live }: ConsoleParts, closing: AbortSignal): void {
  /** What ends each, with whose it is; the oldest first. */
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
