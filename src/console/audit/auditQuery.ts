import { readRecordName } from '../../cli/references.ts'
import { readSpan, type Span } from '../../cli/span.ts'
import type { HandsPosition } from '../../ledger/audit/readHands.ts'
import { textAsTyped } from '../html/formText.ts'

/** The page's filters, as its address has them. */
export interface AuditQuery {
  since: string | undefined
  until: string | undefined
  who: string | undefined
  key: string | undefined
  record: string | undefined
}

/** What an address asks for; an empty field asks for nothing. Pure. */
export function readAuditQuery(parameters: unknown, nowMs: number) {
  const text = (name: string) => textAsTyped(parameters, name) || undefined
  const query: AuditQuery = {
    ...{ since: text('since'), until: text('until'), who: text('who'), key: text('key'), record: text('record') },
  }
  const read = readSpan(query, nowMs)
  const mistakes = read.kind === 'invalid' ? read.problems : []
  const record = readRecordName(query.record, mistakes)
  const problems = mistakes.map((problem) => problem.replace('--', ''))
  const span: Span = read.kind === 'value' ? read.value : { sinceMs: null, untilMs: null }
  return { query, span, record, problems, before: positionOf(text('event'), text('act')) }
}

function positionOf(event: string | undefined, act: string | undefined): HandsPosition | null {
  const isId = (id: string | undefined): id is string => id !== undefined && /^\d{1,18}$/.test(id)
  return isId(event) && isId(act) ? { event, act } : null
}
