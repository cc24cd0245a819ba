import type { FastifyInstance } from 'fastify'
import {
  type OperatorLogEntry,
  type OperatorLogPosition,
  type RecordOfAct,
  readOperatorLog,
} from '../ledger/audit/readOperatorActs.ts'
import { actFacts } from '../operations/audit.ts'
import { parseTimeSpan } from '../operations/filters.ts'
import { parseRecordOption } from '../operations/references.ts'
import { escapeControl } from '../plainText.ts'
import { addVersionRoute } from './bounds.ts'
import { refuseWrongFields } from './errors.ts'
import { cutAndEscapeText, instantHtml, nothingToShow, table } from './html/elements.ts'
import { fieldTextAsTyped, trimmedFieldText } from './html/form.ts'
import { type HtmlPart, type HtmlValue, html } from './html/html.ts'
import { sendPage, versionOf } from './html/layout.ts'
import type { ConsoleParts } from './parts.ts'

const pageRows = 100

export function addAuditRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const readActs = async (query: unknown) => {
    const { given, filter } = readAuditQuery(query, parts.clock.nowMs())
    const { ledger } = await parts.databases()
    return { given, ...(await readOperatorLog(ledger, filter, readPosition(query), pageRows)) }
  }
  addVersionRoute(app, '/audit/version', parts, async ({ query }) => versionOf((await readActs(query)).entries))
  app.get('/audit', async ({ query, url }, reply) => {
    const { given, entries, next } = await readActs(query)
    const live = { path: url.replace('/audit', '/audit/version'), version: versionOf(entries) }
    return sendPage(reply, { title: 'Activity', live }, auditHtml(given, entries, next))
  })
}

const filterNames = ['since', 'until', 'who', 'key', 'record'] as const

/** @throws RequestRefused for a wrong filter */
function readAuditQuery(query: unknown, nowMs: number) {
  const texts = filterNames.map((name) => [name, fieldTextAsTyped(query, name)] as const)
  const given = new Map(texts.filter(([, text]) => text !== ''))
  const problems: string[] = []
  const span = parseTimeSpan({ since: given.get('since'), until: given.get('until') }, nowMs, problems)
  const record = parseRecordOption(given.get('record'), problems)
  refuseWrongFields(problems)
  return { given, filter: { ...span, who: given.get('who') ?? null, key: given.get('key') ?? null, record } }
}

function readPosition(query: unknown): OperatorLogPosition | null {
  const [act = '', step = ''] = [trimmedFieldText(query, 'act'), trimmedFieldText(query, 'step')]
  return [act, step].every((id) => /^\d{1,18}$/.test(id)) ? { act, step } : null
}

type Given = ReadonlyMap<string, string>

function auditHtml(given: Given, acts: readonly OperatorLogEntry[], next: OperatorLogPosition | null): HtmlValue {
  const further = new URLSearchParams([...given, ...Object.entries(next ?? {})]).toString()
  const older = next && html`<p><a href="/audit?${further}">Older</a></p>`
  const none = given.size > 0 ? 'No act matches.' : 'No operator has changed anything yet.'
  return html`${filterForm(given)}
<section id="acts" data-live>${acts.length === 0 ? nothingToShow(none) : actsTable(acts)}${older}</section>
<p class="quiet">For an auditor, <code>outboxd audit --csv</code> has a line per record, with its amounts and the times of its steps.</p>`
}

function filterForm(given: Given): HtmlPart {
  const field = (name: (typeof filterNames)[number], words: string, hint: string) =>
    html`<label>${words} <input name="${name}" value="${given.get(name) ?? ''}" placeholder="${hint}"></label> `
  return html`<form method="get" action="/audit" class="line">
${field('since', 'Since', '7d, 2026-11-01')}${field('until', 'Until', '2026-12-01')}
${field('who', 'Who', 'part of a name')}${field('key', 'Key', "a record's key")}
${field('record', 'Record', 'outbox:4711')}
<button>Show</button>
</form>`
}

function actsTable(acts: readonly OperatorLogEntry[]): HtmlPart {
  return table(
    'Who did what',
    ['When', 'Who', 'What', 'Record', 'Why', 'From'],
    acts.map(({ atMs, who, act, untilMs, records, detail, reason, account }) => [
      instantHtml(atMs),
      escapeControl(who),
      html`${escapeControl(act + actFacts(act, detail))}${untilMs === null ? '' : html` until ${instantHtml(untilMs)}`}`,
      recordsCell(records, detail?.unnamed),
      reason === null ? '' : html`<span class="foreign reason">${escapeControl(reason)}</span>`,
      escapeControl(account ?? ''),
    ]),
  )
}

const recordsShown = 5

function recordsCell(records: readonly RecordOfAct[], unnamed: unknown): HtmlValue {
  const links = records.slice(0, recordsShown).map(({ id, outboxId, type, key }, i) => {
    const name = html`<a href="/records/${encodeURIComponent(id ?? `outbox:${outboxId}`)}">${escapeControl(`outbox:${outboxId}`)}</a>`
    return html`${i > 0 ? ', ' : ''}${name} ${escapeControl(type)}${key === null ? '' : `, key ${cutAndEscapeText(key, 40)}`}`
  })
  const more = Math.max(0, records.length - recordsShown) + Number(unnamed ?? 0)
  return more > 0 ? [links, ` and ${more} more`] : links
}
