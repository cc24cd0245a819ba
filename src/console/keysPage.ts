import type { FastifyInstance } from 'fastify'
import { descriptionListHtml } from './html/elements.ts'
import { html } from './html/html.ts'
import { sendPage } from './html/layout.ts'

/** assets/keys.js has the keys. */
const keys: readonly (readonly [keys: string, what: string])[] = [
  ['/', 'find a record'],
  ['g o, g r, g a, g m, g s', 'Overview, Records, Activity, Mapping, System'],
  ['j, k', 'the next row, the former row; Enter opens it'],
  ['x', 'tick the row'],
  ['[, ]', 'the former and the next record that needs attention'],
  ['r, d', 'replay, discard: each shows a preview first'],
  ['v', 'show values, or hide them'],
  ['?', 'these keys'],
  ['Esc', 'close'],
]

export function addKeysRoute(app: FastifyInstance): void {
  const rows = keys.map(([names, what]) => [html`<kbd>${names}</kbd>`, what] as const)
  app.get('/keys', (_request, reply) =>
    sendPage(reply, { title: 'Keys' }, [
      descriptionListHtml(rows),
      html`<p class="confirm"><button type="button" data-keys-switch>Turn the keys on or off</button> <a class="button" href="/" data-close>Close</a></p>`,
    ]),
  )
}
