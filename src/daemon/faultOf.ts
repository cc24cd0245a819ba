import { boundText, textMax } from '../boundText.ts'
import { showError } from '../observe/redact.ts'
import { blameFor } from '../postgres/database.ts'
import type { Fault } from './capture/take.ts'

/**
 * What is known of an error: its words for the ledger, and the code alone for what everybody may read.
 *
 * @param isMark it was a mark that failed, which the table's own triggers may do
 */
export function faultOf(error: unknown, isMark: boolean): Fault {
  const { code, class: name } = showError(error)
  const message = error instanceof Error ? error.message : String(error)
  return {
    blame: blameFor(error, isMark ? 'mark' : 'claim'),
    code: code ?? name,
    message: boundText(message, textMax.message),
  }
}
