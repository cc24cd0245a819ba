import { type HtmlValue, html } from '@prairielearn/html'
import type { Viewer } from '../guard/viewer.ts'
import { hidden } from './fields.ts'

export interface FormHead {
  /** Where it is posted to. */
  action: string
  viewer: Pick<Viewer, 'csrf' | 'canChange'>
  class?: string
  /** False for a form that changes nothing in the ledger: it is there for those who may only read, too. */
  changes?: boolean
}

/**
 * A form that is posted, with the token without which the guard refuses it. What changes something is not there for whoever may
 * only read: this is '' then. The route answers with 303 to a page.
 */
export function form({ action, viewer, class: name, changes = true }: FormHead, fields: HtmlValue): HtmlValue {
  if (changes && !viewer.canChange) return ''
  return html`<form method="post" action="${action}" class="${name ?? 'line'}">
${hidden('csrf', viewer.csrf)}
${fields}
</form>`
}
