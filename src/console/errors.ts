import { LedgerMayHaveLostData } from '../ledger/history/history.ts'
import { explainError } from '../operations/explainError.ts'
import { FilesDiffer } from '../operations/ledgerFiles.ts'
import { capitalize } from '../plainText.ts'
import { DatabaseUnusable, isLockTimeoutOrCanceled, isTransientError } from '../postgres/database.ts'
import { isLockTimeout } from '../postgres/sqlState.ts'

export class RequestRefused extends Error {
  override name = 'RequestRefused'
  readonly statusCode: number
  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}

/** @throws RequestRefused if there are problems with fields, which are named as the options of the commands */
export function refuseWrongFields(problems: readonly string[]): void {
  if (problems.length > 0) throw new RequestRefused(400, problems.join('\n').replaceAll('--', ''))
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

const refusal = (status: number, words: string): ErrorPage => ({
  ...{ status, words, isPassing: false },
  title: status === 404 ? 'Not found' : 'Refused',
})

const tooLarge = 'The form is too large and was not read. It may have 100 kB. The commands take more.'

const sentence = (message: string) => `${capitalize(message)}${message.endsWith('.') ? '' : '.'}`

export function consoleErrorMessage(error: unknown): string {
  return explainConsoleError(error instanceof Error ? error : new Error(String(error))).words
}
