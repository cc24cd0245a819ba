import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LedgerMayHaveLostData } from '../ledger/history/history.ts'
import { explainError } from '../operations/explainError.ts'
import { FilesDiffer } from '../operations/ledgerFiles.ts'
import { capitalize } from '../plainText.ts'
import { DatabaseUnusable, isLockTimeoutOrCanceled, isTransientError } from '../postgres/database.ts'
import { isLockTimeout } from '../postgres/sqlState.ts'
import { notice, untrustedParagraphHtml } from './html/elements.ts'
import { html } from './html/html.ts'
import { renderPage, sendPage } from './html/layout.ts'
import { overviewVersionPath } from './parts.ts'

export class RequestRefused extends Error {
  override name = 'RequestRefused'
  readonly statusCode: number
  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}

export interface ErrorPage {
  status: number
  title: string
  words: string
  isPassing: boolean
}

/** SQLSTATEs of a missing table, column, function or schema: the ledger has a different version. */
const lacking = ['42P01', '42703', '42883', '3F000']
/** SQLSTATE of a text that Postgres cannot store. */
const notStorable = '22021'

export function explainConsoleError(error: Error & { statusCode?: number; code?: unknown }): ErrorPage {
  // Refusals are checked first, because their texts may look like a lost connection ("ended", "closed").
  if (error.statusCode !== undefined && error.statusCode < 500)
    return refusal(error.statusCode, error.statusCode === 413 ? tooLarge : error.message)
  if (error.code === notStorable)
    return refusal(400, 'The request contains the character U+0000, which Postgres cannot store. Leave it out.')
  const { message } = explainError(error)
  if (error instanceof LedgerMayHaveLostData || error instanceof FilesDiffer) return refusal(409, sentence(message))
  const away = { status: 503, title: 'A database cannot be used', isPassing: true }
  if (isLockTimeout(error))
    return { ...away, words: `The ledger does not answer, because another session holds a lock on it (${message}).` }
  // Not retried, because the retry would take as long.
  if (isLockTimeoutOrCanceled(error instanceof DatabaseUnusable ? error.cause : error))
    return {
      ...away,
      ...{ title: 'This took too long', isPassing: false },
      words: `The database did not finish in time (${message}). Ask for less, or try again later.`,
    }
  if (error instanceof DatabaseUnusable) return { ...away, words: sentence(message) }
  // Errors of the outbox's database are DatabaseUnusable, so the remaining ones are the ledger's.
  if (lacking.includes(String(error.code)))
    return { ...away, words: `The ledger does not fit this version (${message}). Run \`outboxd migrate\`.` }
  if (isTransientError(error)) return { ...away, words: `The ledger’s database fails: ${message}.` }
  return { status: 500, title: 'Something went wrong', words: sentence(message), isPassing: false }
}

const refusal = (status: number, words: string): ErrorPage => ({ status, title: 'Refused', words, isPassing: false })

const tooLarge =
  'The form is too large and was not read. A payload to map may have 500 kB, any other form 100 kB. The commands take more.'

const sentence = (message: string) => `${capitalize(message)}${message.endsWith('.') ? '' : '.'}`

export function consoleErrorMessage(error: unknown): string {
  return explainConsoleError(error instanceof Error ? error : new Error(String(error))).words
}

export function installErrorHandlers(app: FastifyInstance, say: (line: string) => void): void {
  app.setNotFoundHandler((request, reply) =>
    sendErrorPage(request, reply, {
      ...refusal(404, 'There is no page at this address.'),
      title: 'Not found',
    }),
  )
  app.setErrorHandler(async (error: Error, request, reply) => {
    const trouble = explainConsoleError(error)
    if (trouble.status >= 500 && request.routeOptions.config.isPolled !== true)
      say(`the console could not answer ${request.method} ${request.url.split('?', 1)[0]}: ${trouble.words}`)
    return sendErrorPage(request, reply, trouble)
  })
}

/** Sets the security headers itself, because hooks do not run for an unreadable address. */
export function refuseUnreadableAddress(_error: Error, _request: FastifyRequest, reply: FastifyReply): void {
  reply.headers({ 'content-security-policy': "default-src 'none'", 'x-content-type-options': 'nosniff' })
  void reply.code(400).type('text/plain; charset=utf-8').send('The address cannot be read.\n')
}

function sendErrorPage(request: FastifyRequest, reply: FastifyReply, trouble: ErrorPage): FastifyReply {
  const { status, title, words } = trouble
  const willReload = trouble.isPassing && request.method === 'GET'
  const live = willReload ? { live: { path: overviewVersionPath } } : {}
  const hope = willReload ? html`<p>This page loads again by itself when the database answers.</p>` : ''
  const said = words.split('\n').map((line) => untrustedParagraphHtml(line.trim()))
  const head = { title, current: null, viewer: request.viewer ?? null, ...live }
  return sendPage(reply.code(status), renderPage(head, notice('bad', [said, hope])))
}
