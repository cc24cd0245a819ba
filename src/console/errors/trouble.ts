import { explain } from '../../cli/explainError.ts'
import { capitalize } from '../../cli/table.ts'
import { DatabaseUnusable, isLock, isPassing } from '../../postgres/database.ts'
import { waitedForLock } from '../../postgres/sqlState.ts'

/** What an error means for whoever asked for a page. */
export interface Trouble {
  status: number
  title: string
  /** A sentence. */
  words: string
  /** It may be over soon, without anybody's doing something to the page. */
  isPassing: boolean
}

/** A table, a column or a function that is not there: the ledger is of another version than we are, or gone. */
const lacking = ['42P01', '42703', '42883', '3F000']

export function readTrouble(error: Error & { statusCode?: number; code?: unknown }): Trouble {
  const away = { status: 503, title: 'A database cannot be used', isPassing: true }
  if (waitedForLock(error))
    return { ...away, words: `The ledger does not answer: others hold a lock on it (${explain(error).message}).` }
  if (isOfWhatWasAsked(error)) return { ...away, title: 'This took too long', words: tooLong(error), isPassing: false }
  if (error instanceof DatabaseUnusable) return { ...away, words: sentence(explain(error).message) }
  const { message } = explain(error)
  // What the outbox's database says comes as DatabaseUnusable: the rest is the ledger's.
  if (lacking.includes(String(error.code)))
    return { ...away, words: `The ledger is not as this version needs it (${message}): run \`outboxd migrate\`.` }
  if (isPassing(error)) return { ...away, words: `The ledger’s database does not answer as it should: ${message}.` }
  if (error.statusCode === 413) return { status: 413, title: 'Refused', words: tooLarge, isPassing: false }
  if (error.statusCode !== undefined && error.statusCode < 500)
    return { status: error.statusCode, title: 'Refused', words: message, isPassing: false }
  return { status: 500, title: 'This went wrong', words: sentence(message), isPassing: false }
}

/** A statement's time was up, or that of a lock of the ERP's: asked again by itself, it would only cost the same again. */
function isOfWhatWasAsked(error: Error): boolean {
  return isLock(error instanceof DatabaseUnusable ? error.cause : error)
}

const tooLarge =
  'The form holds too much, so it was not read: a payload to map may have 500 kB, any other form 100 kB. The commands take more.'

const tooLong = (error: Error) =>
  `The database did not get through with it (${explain(error).message}): ask for less, or again when it has less to do.`

/** An error in a sentence. */
export function troubleOf(error: unknown): string {
  return readTrouble(error instanceof Error ? error : new Error(String(error))).words
}

function sentence(message: string): string {
  return `${capitalize(message)}${message.endsWith('.') ? '' : '.'}`
}
