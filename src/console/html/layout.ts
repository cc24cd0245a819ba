import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { systemClock } from '../../clock.ts'
import { type State, statesNeedingAttention } from '../../model/submission.ts'
import { formatInstant, formatIsoInstant } from '../../time.ts'
import { version } from '../../version.ts'
import type { Viewer } from '../guard/installGuard.ts'
import { descriptionListHtml, type IconName, icon, iconSheet } from './elements.ts'
import { formHtml } from './form.ts'
import { type HtmlPart, type HtmlValue, html } from './html.ts'

const pages = [
  { path: '/', words: 'Overview', icon: 'overview' },
  { path: '/records', words: 'Records', icon: 'records' },
  { path: '/audit', words: 'Activity', icon: 'activity' },
  { path: '/mapping', words: 'Mapping', icon: 'mapping' },
  { path: '/system', words: 'System', icon: 'system' },
] as const satisfies { path: string; words: string; icon: IconName }[]

export interface PageHead {
  title: string
  /** What the page begins with; by default its title. */
  heading?: HtmlValue
  /**
   * assets/console.js polls `path` for the page's version. If the version changed, the script replaces the `data-live`
   * elements, matched by id. A page without `version` is loaded again as soon as `path` returns one. A page that is not
   * live says how old it is.
   */
  live?: { path: string; version?: string }
}

/** What tells this installation from others, and each page about it. */
export interface Installation {
  /** '' if it has none, or while the ledger was never read. */
  name: string
  colour: string | null
  /** Of all records by state; null while the ledger was never read. */
  counts: Record<State, number> | null
}

export const countNeedingAttention = (counts: Record<State, number>): number =>
  statesNeedingAttention.reduce((sum, state) => sum + counts[state], 0)

export type AssetName = 'console.css' | 'console.js' | 'keys.js' | 'console.svg'

declare module 'fastify' {
  interface FastifyInstance {
    installation: Installation
    assetPaths: Record<AssetName, string>
  }
}

/** Sends a page with what is known of its viewer and the installation. */
export function sendPage(reply: FastifyReply, { title, heading, live }: PageHead, main: HtmlValue): FastifyReply {
  const { viewer, url }: { viewer?: Viewer; url: string } = reply.request
  const { installation, assetPaths } = reply.server
  const { name, colour, counts } = installation
  const count = counts === null ? 0 : countNeedingAttention(counts)
  const nowMs = systemClock.nowMs()
  const page = html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${count ? `(${count}) ` : ''}${title} · outboxd${name && ` · ${name}`}</title>
  <link rel="icon" href="${assetPaths['console.svg']}">
  <link rel="stylesheet" href="${assetPaths['console.css']}">
  <script src="${assetPaths['console.js']}" defer></script>
  <script src="${assetPaths['keys.js']}" defer></script>
</head>
<body${attributes(live)}${colour === null ? '' : html` data-colour="${colour}"`}>
${iconSheet}
<a class="skip" href="#main">Skip to the content</a>
<header>
  <p class="name"><a href="/"><img src="${assetPaths['console.svg']}" alt="">outboxd</a>${name && html` <strong>${name}</strong>`}</p>
  ${viewer === undefined ? '' : [navigation(url, count), search]}
  <p class="age">as of <time id="as-of" datetime="${formatIsoInstant(nowMs)}">${formatInstant(nowMs)}</time></p>
  ${viewer === undefined ? '' : who(viewer)}
</header>
<p id="said" role="status"></p>
<main id="main" tabindex="-1">
${heading ?? html`<h1>${title}</h1>`}
${main}
</main>
<footer>All times are in UTC. outboxd ${version} ${viewer === undefined ? '' : html`<a href="/keys" data-dialog data-key="?">Keys</a>`}</footer>
</body>
</html>
`
  return reply.type('text/html; charset=utf-8').send(page.toString())
}

function attributes(live: PageHead['live']): HtmlValue {
  if (live === undefined) return ''
  const version = live.version === undefined ? '' : html` data-version="${live.version}"`
  return html` data-watch="${live.path}"${version}`
}

function navigation(url: string, count: number): HtmlPart {
  const here = `/${url.split(/[/?]/, 2)[1]}`
  const links = pages.map((page) => {
    const badge = page.path === '/records' ? html` <b id="attention">${count || ''}</b>` : ''
    const isHere = page.path === here ? html` aria-current="page"` : ''
    return html`<li><a href="${page.path}"${isHere}>${icon(page.icon)}<span>${page.words}${badge}</span></a></li>`
  })
  return html`<nav aria-label="Pages"><ul>${links}</ul></nav>`
}

/** Identifies what a live page shows. */
export const versionOf = (shown: unknown): string =>
  createHash('sha256').update(JSON.stringify(shown)).digest('base64url')

const search = html`<search><form action="/find">
<input type="search" name="word" required maxlength="1000" autocomplete="off" aria-label="Find a record" placeholder="Order, key, id or transaction">
<button aria-label="Find">${icon('search')}</button></form></search>`

function who(viewer: Viewer): HtmlPart {
  const leave = viewer.canSignOut
    ? formHtml({ action: '/logout', viewer, changes: false }, html`<button>sign out</button>`)
    : ''
  return html`<div class="who"><span>${viewer.who}</span>${viewer.canChange ? '' : html` <strong>read only</strong>`}${leave}</div>`
}

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
