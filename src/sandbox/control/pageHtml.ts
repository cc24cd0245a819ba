import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import { endpoints } from '../endpoints/requestSchemas.ts'
import { type Fault, faultSchema } from '../faults/faults.ts'
import type { ClockReading } from '../sandboxClock.ts'
import { clientPatchSchema, type LiveSettings, liveSettingsSchema } from '../sandboxSettings.ts'
import type { SeenRequest, SeenTransaction } from './pageQueries.ts'

/** All that the page at /_sandbox/ shows, at one moment. */
export interface PageView {
  /** Where it was asked for, such as 127.0.0.1:8080. */
  host: string
  /** Whose things are shown; null: everybody's. */
  client: string | null
  clients: readonly string[]
  clock: ClockReading
  requests: readonly SeenRequest[]
  transactions: readonly SeenTransaction[]
  faults: readonly Fault[]
  settings: LiveSettings
  /** Names of settings that are not as started. */
  changed: readonly string[]
}

/**
 * Renders the page. It can be read without a script; assets/sandbox.js renews what is `data-live` and sends the forms, whose
 * `data-method`, `action` and fields (with `data-type`) are a request of the control API. Every value is escaped by `html`.
 */
export function renderPage(view: PageView): string {
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Sandbox ${view.host}</title>
  <link rel="icon" href="data:,">
  <link rel="stylesheet" href="/_sandbox/assets/sandbox.css">
  <script src="/_sandbox/assets/sandbox.js" defer></script>
</head>
<body>
<header>
  <h1>Sandbox <code>${view.host}</code></h1>
  <output id="said" role="status"></output>
  <nav>
    <a href="/openapi.json">OpenAPI</a> <a href="/_sandbox/ledger">ledger</a> <a href="/_sandbox/events">events</a>
    <a href="/_sandbox/counts">counts</a> <a href="/_sandbox/rate">rate</a>
  </nav>
</header>
${clientsNav(view)}
<noscript><p>Without JavaScript this page is to be read and reloaded. To change something: <code>curl --json</code> to /_sandbox/, as docs/sandbox.md says.</p></noscript>
<main>
  ${clockSection(view.clock)}
  ${faultsSection(view)}
  ${requestsSection(view)}
  ${transactionsSection(view)}
  ${settingsSection(view)}
</main>
</body>
</html>
`.toString()
}

/** Where there are several, each can be looked at alone. */
function clientsNav({ client, clients }: PageView): HtmlValue {
  if (clients.length < 2) return ''
  const links = [null, ...clients].map((each) => {
    const words = each ?? 'all clients'
    return each === client ? html`<strong>${words}</strong> ` : html`<a href="${at('/_sandbox/', each)}">${words}</a> `
  })
  return html`<nav aria-label="clients">${links}</nav>`
}

/** A path of the control API, for one client or for all. */
function at(path: string, client: string | null): string {
  if (client === null) return path
  return `${path}${path.includes('?') ? '&' : '?'}client=${encodeURIComponent(client)}`
}

function clockSection({ now, offsetSeconds, stands }: ClockReading): HtmlSafeString {
  const runs = stands ? 'stands' : 'runs'
  const ahead = offsetSeconds === 0 ? '' : `, ${offsetSeconds} s on`
  const steps = [
    ['1 minute', 60],
    ['10 minutes', 600],
    ['1 hour', 3600],
  ] as const
  return html`<section aria-labelledby="clock">
  <h2 id="clock">Clock</h2>
  <p id="now" data-live><time datetime="${now}">${shownTime(now)}</time> UTC; it ${runs}${ahead}</p>
  <div class="actions">${steps.map(
    ([words, seconds]) => html`<form data-method="POST" action="/_sandbox/clock">
    <input type="hidden" name="advanceSeconds" value="${seconds}" data-type="number"><button>on by ${words}</button>
  </form>`,
  )}</div>
</section>`
}

/** As the columns have it. */
function shownTime(iso: string): string {
  return iso.replace('T', ' ').slice(0, '2026-11-22 00:00:00.000'.length)
}

function faultsSection({ faults, client }: PageView): HtmlSafeString {
  const kinds = faultSchema.options.map(({ shape }) => shape.kind.value)
  return html`<section aria-labelledby="faults">
  <h2 id="faults">Faults</h2>
  <div id="faults-on" data-live>${
    faults.length === 0
      ? html`<p>None is switched on.</p>`
      : table(
          ['fault', 'hit', 'left', ''],
          faults.map(({ id, spec, hits, left }) => [
            html`<code>${JSON.stringify(spec)}</code>`,
            hits,
            left ?? 'until removed',
            button('DELETE', `/_sandbox/faults/${id}`, 'switch off'),
          ]),
        )
  }</div>
  <form data-method="POST" action="/_sandbox/faults">
    ${client === null ? '' : html`<input type="hidden" name="client" value="${client}">`}
    ${choice('kind', kinds)}
    ${choice('endpoint', ['', ...endpoints])}
    <label>times <input name="times" type="number" min="1" data-type="number" value="1"></label>
    <label>status <input name="status" type="number" min="200" max="599" data-type="number" placeholder="of answer"></label>
    <label>code <input name="code" size="6" placeholder="E003"></label>
    ${choice('when', ['', 'before', 'after'])}
    <label>delayMs <input name="delayMs" type="number" min="0" data-type="number"></label>
    <button>switch on</button>
  </form>
</section>`
}

function requestsSection({ requests, client }: PageView): HtmlSafeString {
  return html`<section class="wide" aria-labelledby="requests">
  <h2 id="requests">Requests</h2>
  <div class="actions">
    ${button('DELETE', at('/_sandbox/ledger', client), 'forget requests')}
    ${button('DELETE', at('/_sandbox/ledger?everything=true', client), 'forget everything')}
    ${button('POST', at('/_sandbox/tokens/revoke', client), 'revoke tokens')}
  </div>
  <div id="requests-seen" data-live>${
    requests.length === 0
      ? html`<p>None has arrived.</p>`
      : table(
          ['#', 'arrived (UTC)', 'request', 'answer', 'client', 'created', 'body'],
          requests.map((row) => [
            row.sequence,
            row.arrivedAt,
            html`<code>${row.method} ${row.path}</code>${row.idempotencyKey === null ? '' : html`<br><small>key ${row.idempotencyKey}</small>`}`,
            html`<span class="${answerClass(row.status)}">${row.status ?? 'dropped'}</span>${row.faultId === null ? '' : html` <small>fault ${row.faultId}</small>`}`,
            row.client ?? '',
            row.effect === null ? '' : html`<code>${row.effect}</code>`,
            row.body === ''
              ? ''
              : html`<details id="body-${row.sequence}"><summary>${row.body.length} characters</summary><pre>${row.body}</pre></details>`,
          ]),
        )
  }</div>
</section>`
}

function answerClass(status: number | null): string {
  if (status === null) return 'bad'
  return status < 300 ? 'good' : status < 500 ? 'refused' : 'bad'
}

function transactionsSection({ transactions: rows, clock }: PageView): HtmlSafeString {
  const nowText = shownTime(clock.now)
  return html`<section class="wide" aria-labelledby="transactions">
  <h2 id="transactions">Transactions and orders</h2>
  <div id="transactions-seen" data-live>${
    rows.length === 0
      ? html`<p>None was accepted.</p>`
      : table(
          ['id', 'customer', 'accepted (UTC)', 'done (UTC)', 'status', ''],
          rows.map((row) => {
            const isPending = row.held || row.doneAt > nowText
            return [
              html`<code>${row.id}</code>`,
              row.customerId,
              row.acceptedAt,
              row.held ? 'held' : row.doneAt,
              isPending ? 'pending' : `${row.outcome}${row.errorCode === null ? '' : ` ${row.errorCode}`}`,
              isPending ? courseButtons(row) : '',
            ]
          }),
        )
  }</div>
</section>`
}

function courseButtons({ kind, id, client, held }: SeenTransaction): HtmlSafeString {
  const path = at(`/_sandbox/${kind}/${encodeURIComponent(id)}`, client)
  const field = (name: string, value: HtmlValue, type = 'text') =>
    html`<input type="hidden" name="${name}" value="${value}" data-type="${type}">`
  return html`<div class="actions">
    ${button('PATCH', path, 'complete', field('finish', 'completed'))}
    ${kind === 'orders' ? '' : button('PATCH', path, 'fail', field('finish', 'failed'))}
    ${button('PATCH', path, held ? 'let go' : 'hold', field('hold', !held, 'json'))}
  </div>`
}

function settingsSection({ settings, changed, client }: PageView): HtmlSafeString {
  const shown = Object.entries(settings).filter(([name]) => client === null || name in clientPatchSchema.shape)
  return html`<section class="wide" aria-labelledby="settings">
  <h2 id="settings">Settings</h2>
  <div class="actions">${button('DELETE', at('/_sandbox/settings', client), 'as started')}</div>
  <div id="settings-now" data-live>${table(
    ['setting', 'value', 'what it is'],
    shown.map(([name, value]) => {
      const [type, text] = typeof value === 'string' ? ['text', value] : ['json', JSON.stringify(value)]
      return [
        html`<code>${name}</code>${changed.includes(name) ? html` <small>changed</small>` : ''}`,
        html`<code class="without-script">${text}</code>
        <form class="line" data-method="PATCH" action="${at('/_sandbox/settings', client)}">
          <input name="${name}" aria-label="${name}" value="${text}" data-type="${type}"><button>set</button>
        </form>`,
        liveSettingsSchema.shape[name as keyof LiveSettings].description ?? '',
      ]
    }),
  )}</div>
</section>`
}

function table(heads: readonly string[], rows: readonly (readonly HtmlValue[])[]): HtmlSafeString {
  return html`<table>
  <thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
  <tbody>${rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table>`
}

function button(method: string, path: string, words: string, fields: HtmlValue = ''): HtmlSafeString {
  return html`<form data-method="${method}" action="${path}">${fields}<button>${words}</button></form>`
}

function choice(name: string, values: readonly string[]): HtmlSafeString {
  const options = values.map((value) => html`<option value="${value}">${value || 'as the kind says'}</option>`)
  return html`<label>${name} <select name="${name}">${options}</select></label>`
}
