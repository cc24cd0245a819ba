import { type HtmlSafeString, html } from '@prairielearn/html'
import { pluralize } from '../../cli/table.ts'
import type { Cause } from '../../ledger/operator/readCauses.ts'
import type { Problem } from '../../model.ts'
import { foreign } from '../html/foreign.ts'
import { empty } from '../html/notice.ts'
import { table } from '../html/table.ts'
import { age } from '../html/time.ts'

/** What records wait for a person, by what they have in common. */
export interface ForPerson {
  causes: readonly Cause[]
  lookedAt: number
  /** There are more than were looked at. */
  isCut: boolean
}

/** More nobody reads at a glance; the list has them all. */
const causesShown = 8
const problemsShown = 20

/** What waits for a person. */
export function personSection({ causes, lookedAt, isCut }: ForPerson, nowMs: number): HtmlSafeString {
  if (causes.length === 0) return html`<h2>For a person</h2>${empty('Nothing waits for a person.')}`
  const more = causes.length - causesShown
  const rows = causes
    .slice(0, causesShown)
    .map((cause) => [
      html`<a href="/records?state=${cause.state}&amp;cause=${cause.cause}">${pluralize(cause.count, 'record')}</a>`,
      cause.mayHaveArrived ? `${cause.state}, may have arrived` : cause.state,
      foreign(cause.code ?? '', 16),
      foreign(cause.shape, 200),
      foreign(cause.types.join(', '), 40),
      age(cause.firstMs, nowMs),
    ])
  return html`<h2>For a person</h2>
${table('what waits for a person', [{ words: 'records' }, { words: 'state' }, { words: 'code' }, { words: 'reason' }, { words: 'type' }, { words: 'first' }], rows)}
${more > 0 ? html`<p><a href="/records">${pluralize(more, 'more cause')}</a></p>` : ''}
${isCut ? html`<p class="quiet">Of the newest ${lookedAt.toLocaleString('en')} that wait.</p>` : ''}`
}

/** What is wrong and stands. */
export function problemsSection(problems: readonly Problem[], nowMs: number): HtmlSafeString {
  const more = problems.length - problemsShown
  const rows = problems
    .slice(0, problemsShown)
    .map(({ kind, subject, detail, sinceMs, retryMs }) => [
      kind,
      foreign(subject, 40),
      foreign(detail, 400),
      age(sinceMs, nowMs),
      retryMs === null ? '' : retryMs <= nowMs ? 'now' : age(retryMs, nowMs),
    ])
  return html`<h2>Problems</h2>
${table('problems', [{ words: 'kind' }, { words: 'of' }, { words: 'what was seen' }, { words: 'since' }, { words: 'tried again' }], rows)}
${more > 0 ? html`<p>And ${more} more: outboxd status --json has them all.</p>` : ''}`
}
