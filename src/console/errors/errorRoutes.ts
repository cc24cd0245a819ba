import { html } from '@prairielearn/html'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { layout } from '../html/layout.ts'
import { notice } from '../html/notice.ts'
import { sendPage } from '../html/sendPage.ts'
import type { ConsoleParts } from '../parts.ts'
import { readTrouble } from './trouble.ts'

/** What is said where a page cannot be shown: a database that is away, an address that is none, a request that is refused. */
export function errorRoutes(app: FastifyInstance, { say }: ConsoleParts): void {
  app.setNotFoundHandler((request, reply) =>
    sendMessage(request, reply, { status: 404, title: 'Not found', words: 'There is no page at this address.' }),
  )
  app.setErrorHandler(async (error: Error, request, reply) => {
    const trouble = readTrouble(error)
    const { status, words } = trouble
    if (status >= 500) say(`the console could not answer ${request.method} ${request.url.split('?', 1)[0]}: ${words}`)
    return sendMessage(request, reply, { ...trouble, isPassing: trouble.isPassing && request.method === 'GET' })
  })
}

/** For what is no request that a hook could see: it has none of the headers that pages have, and is no page. */
export function sendUnreadable(_error: Error, _request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'content-security-policy': "default-src 'none'", 'x-content-type-options': 'nosniff' })
  void reply.code(400).type('text/plain; charset=utf-8').send('The address cannot be read.\n')
}

interface Message {
  status: number
  title: string
  words: string
  isPassing?: boolean
}

/** What passes shows itself when it is over: the page Now is read for that. */
function sendMessage(request: FastifyRequest, reply: FastifyReply, message: Message): FastifyReply {
  const { status, title, words, isPassing = false } = message
  const live = isPassing ? { live: { topic: 'now' } } : {}
  const head = { title, current: null, viewer: request.viewer ?? null, ...live }
  const hope = isPassing ? html`<p>The page that you asked for is shown as soon as that is over.</p>` : ''
  const page = layout(head, notice('bad', html`<p>${words}</p>${hope}`))
  return sendPage(reply.code(status), page)
}
