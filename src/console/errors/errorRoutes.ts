import { html } from '@prairielearn/html'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { explain } from '../../cli/explainError.ts'
import { DatabaseUnusable, isPassing } from '../../postgres/database.ts'
import { layout } from '../html/layout.ts'
import { notice } from '../html/notice.ts'
import type { ConsoleParts } from '../parts.ts'

/** What is said where a page cannot be shown: a database that is away, an address that is none, a request that is refused. */
export function errorRoutes(app: FastifyInstance, { say }: ConsoleParts): void {
  app.setNotFoundHandler((request, reply) =>
    reply
      .code(404)
      .type(htmlType)
      .send(errorPage(request, 'Not found', 'There is no page at this address.')),
  )
  app.setErrorHandler(async (error: Error & { statusCode?: number }, request, reply) => {
    const { status, title, words } = readError(error)
    if (status >= 500) say(`${request.method} ${request.url.split('?', 1)[0]}: ${words}`)
    return reply
      .code(status)
      .type(htmlType)
      .send(errorPage(request, title, words))
  })
}

/** For what is no request that a hook could see: it has none of the headers that pages have, and is no page. */
export function sendUnreadable(_error: Error, _request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'content-security-policy': "default-src 'none'", 'x-content-type-options': 'nosniff' })
  void reply.code(400).type('text/plain; charset=utf-8').send('The address cannot be read.\n')
}

const htmlType = 'text/html; charset=utf-8'

/** What an error means for whoever reads the page. */
function readError(error: Error & { statusCode?: number }): { status: number; title: string; words: string } {
  if (error instanceof DatabaseUnusable || isPassing(error))
    return { status: 503, title: 'A database cannot be used', words: troubleOf(error) }
  if (error.statusCode !== undefined && error.statusCode < 500)
    return { status: error.statusCode, title: 'Refused', words: error.message }
  return { status: 500, title: 'This went wrong', words: troubleOf(error) }
}

/** An error in a sentence. */
export function troubleOf(error: unknown): string {
  const { message } = explain(error)
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`
}

/** @param isAway it is shown by itself when there is something to show again; the page Now is read for that */
function errorPage(request: FastifyRequest, title: string, words: string, isAway = false): string {
  const live = isAway ? { live: { topic: 'now' } } : {}
  const hope = isAway ? html`<p>This page is looking again, and shows itself when it can.</p>` : ''
  const head = { title, current: null, viewer: request.viewer ?? null, ...live }
  return layout(head, notice('bad', html`<p>${words}</p>${hope}`))
}
