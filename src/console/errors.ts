import { html } from '@prairielearn/html'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { explainError } from '../operations/explainError.ts'
import { capitalize } from '../plainText.ts'
import { DatabaseUnusable, isLockTimeoutOrCanceled, isTransientError } from '../postgres/database.ts'
import { isLockTimeout } from '../postgres/sqlState.ts'
import { notice } from './html/elements.ts'
import { layout, sendPage } from './html/layout.ts'
import { nowVersionPath } from './parts.ts'

export class Refused extends Error {
  override name = 'Refused'
  readonly statusCode: number
  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}

export interface Trouble {
  status: number
  title: string
  words: string
  isPassing: boolean
}

/** SQLSTATEs of a missing table, column, function or schema: the ledger has a different version. */
const lacking = ['42P01', '42703', '42883', '3F000']

export function explainConsoleError(error: Error & { statusCode?: number; code?: unknown }): Trouble {
  // A refusal comes first, because its text may look like a lost connection ("ended", "closed").
  if (error.statusCode === 413) return { status: 413, title: 'Refused', words: tooLarge, isPassing: false }
  if (error.statusCode !== undefined && error.statusCode < 500)
    return { status: error.statusCode, title: 'Refused', words: error.message, isPassing: false }
  const away = { status: 503, title: 'A database cannot be used', isPassing: true }
  if (isLockTimeout(error))
    return {
      ...away,
      words: `The ledger does not answer, because another session holds a lock on it (${explainError(error).message}).`,
    }
  if (isOfWhatWasAsked(error)) return { ...away, title: 'This took too long', words: tooLong(error), isPassing: false }
  if (error instanceof DatabaseUnusable) return { ...away, words: sentence(explainError(error).message) }
  const { message } = explainError(error)
  // An error of the outbox's database is a DatabaseUnusable, so this one is the ledger's.
  if (lacking.includes(String(error.code)))
    return { ...away, words: `The ledger does not fit this version (${message}). Run \`outboxd migrate\`.` }
  if (isTransientError(error)) return { ...away, words: `The ledger’s database fails: ${message}.` }
  return { status: 500, title: 'Something went wrong', words: sentence(message), isPassing: false }
}

/** True if a statement took too long. Then the page does not retry, because the retry would take as long. */
function isOfWhatWasAsked(error: Error): boolean {
  return isLockTimeoutOrCanceled(error instanceof DatabaseUnusable ? error.cause : error)
}

const tooLarge =
  'The form is too large and was not read. A payload to map may have 500 kB, any other form 100 kB. The commands take more.'

const tooLong = (error: Error) =>
  `The database did not finish in time (${explainError(error).message}). Ask for less, or try again later.`

export function consoleErrorMessage(error: unknown): string {
  return explainConsoleError(error instanceof Error ? error : new Error(String(error))).words
}

function sentence(message: string): string {
  return `${capitalize(message)}${message.endsWith('.') ? '' : '.'}`
}

export function answerConsoleErrors(app: FastifyInstance, say: (line: string) => void): void {
  app.setNotFoundHandler((request, reply) =>
    sendMessage(request, reply, { status: 404, title: 'Not found', words: 'There is no page at this address.' }),
  )
  app.setErrorHandler(async (error: Error, request, reply) => {
    const trouble = explainConsoleError(error)
    const { status, words } = trouble
    if (status >= 500 && request.routeOptions.config.isPolled !== true)
      say(`the console could not answer ${request.method} ${request.url.split('?', 1)[0]}: ${words}`)
    return sendMessage(request, reply, { ...trouble, isPassing: trouble.isPassing && request.method === 'GET' })
  })
}

/** Answers an unreadable address. Sets the headers, because hooks do not run then. */
export function refuseUnreadableAddress(_error: Error, _request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'content-security-policy': "default-src 'none'", 'x-content-type-options': 'nosniff' })
  void reply.code(400).type('text/plain; charset=utf-8').send('The address cannot be read.\n')
}

interface Message {
  status: number
  title: string
  words: string
  isPassing?: boolean
}

function sendMessage(request: FastifyRequest, reply: FastifyReply, message: Message): FastifyReply {
  const { status, title, words, isPassing = false } = message
  const live = isPassing ? { live: { path: nowVersionPath } } : {}
  const head = { title, current: null, viewer: request.viewer ?? null, ...live }
  const hope = isPassing ? html`<p>This page loads again by itself when the database answers.</p>` : ''
  const page = layout(head, notice('bad', html`<p>${words}</p>${hope}`))
  return sendPage(reply.code(status), page)
}
