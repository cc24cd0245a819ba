import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { type AuditSpan, readAuditEntries } from '../ledger/audit/readAuditEntries.ts'
import {
  type OperatorLogEntry,
  type OperatorLogPosition,
  type RecordOfAct,
  readOperatorLog,
} from '../ledger/audit/readOperatorActs.ts'
import { findSubmissions, type ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import {
  actFacts,
  auditCsvHeaderLine,
  auditLineCsv,
  toAuditLine,
  tryReadAmountFieldNames,
} from '../operations/audit.ts'
import type { Databases } from '../operations/databases.ts'
import { parseTimeSpan } from '../operations/filters.ts'
import { parseRecordOption } from '../operations/references.ts'
import { escapeControl } from '../plainText.ts'
import { formatIsoInstantOrNull } from '../time.ts'
import { addVersionRoute } from './bounds.ts'
import { consoleErrorMessage, RequestRefused } from './errors.ts'
import { cutAndEscapeText, instantHtml, nothingToShow, table } from './html/elements.ts'
import { fieldTextAsTyped, trimmedFieldText } from './html/form.ts'
import { type HtmlPart, type HtmlValue, html } from './html/html.ts'
import { sendFile, sendPage, versionOf } from './html/layout.ts'
import type { ConsoleParts } from './parts.ts'
import { logDownload } from './valueAccess.ts'

const pageRows = 100

export function addAuditRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const readActs = async (query: unknown) => {
    const { span, given } = readAuditQuery(query, parts.clock.nowMs())
    const filter = { ...span, who: given.get('who') ?? null }
    return {
      given,
      ...(await readOperatorLog((await parts.databases()).ledger, filter, readPosition(query), pageRows)),
    }
  }
  addVersionRoute(app, '/audit/version', parts, async ({ query }) => versionOf((await readActs(query)).entries))
  app.get('/audit', async ({ query, url }, reply) => {
    const { given, entries, next } = await readActs(query)
    const live = { path: url.replace('/audit', '/audit/version'), version: versionOf(entries) }
    return sendPage(reply, { title: 'Activity', live }, auditHtml(given, entries, next))
  })
  app.get('/audit.csv', async ({ query, viewer }, reply) => {
    const { span } = readAuditQuery(query, parts.clock.nowMs())
    const databases = await parts.databases()
    const csv = Readable.from(csvLines(databases, { ...span, type: null, containing: null }, parts))
    await once(csv, 'readable') // so that an unreadable ledger gives an error, not an empty CSV
    const [since, until] = [formatIsoInstantOrNull(span.sinceMs), formatIsoInstantOrNull(span.untilMs)]
    await logDownload(parts, viewer, await findNamedRecords(databases, span), { file: 'audit.csv', since, until })
    return sendFile(reply, 'audit.csv', 'text/csv', csv)
  })
}

const filterNames = ['since', 'until', 'who', 'key', 'record'] as const

/** @throws RequestRefused for a wrong filter */
function readAuditQuery(query: unknown, nowMs: number) {
  const texts = filterNames.map((name) => [name, fieldTextAsTyped(query, name)] as const)
  const given = new Map(texts.filter(([, text]) => text !== ''))
  const read = parseTimeSpan({ since: given.get('since'), until: given.get('until') }, nowMs)
  const problems = read.kind === 'invalid' ? read.problems : []
  const record = parseRecordOption(given.get('record'), problems)
  if (read.kind === 'invalid' || problems.length > 0)
    throw new RequestRefused(400, problems.join('\n').replaceAll('--', ''))
  return { given, span: { ...read.value, key: given.get('key') ?? null, record } }
}

function readPosition(query: unknown): OperatorLogPosition | null {
  const [event = '', act = ''] = [trimmedFieldText(query, 'event'), trimmedFieldText(query, 'act')]
  return [event, act].every((id) => /^\d{1,18}$/.test(id)) ? { event, act } : null
}

const namedMax = 1_000

/** @returns null if the filter names neither key nor record */
function findNamedRecords(
  { ledger }: Databases,
  { key, record }: Pick<AuditSpan, 'key' | 'record'>,
): Promise<ListedSubmission[]> | null {
  if (record === null) return key === null ? null : findSubmissions(ledger, { kind: 'key', value: key }, namedMax)
  if ('id' in record) return findSubmissions(ledger, { kind: 'range', from: record.id, to: record.id }, namedMax)
  return findSubmissions(ledger, { kind: 'outbox', value: record.outboxId }, namedMax)
}

/** Throws if reading fails, so that the download breaks off and the browser notices. */
async function* csvLines(
  { ledger }: Databases,
  span: AuditSpan,
  { config, say }: ConsoleParts,
): AsyncGenerator<string> {
  const names = tryReadAmountFieldNames(config.mappingsDir)
  let head = auditCsvHeaderLine(names)
  try {
    for await (const entry of readAuditEntries(ledger, span)) {
      yield head + auditLineCsv(toAuditLine(entry), names)
      head = ''
    }
    if (head !== '') yield head
  } catch (error) {
    if (head === '') say(`the download of /audit.csv broke off: ${consoleErrorMessage(error)}`)
    throw error
  }
}

type Given = ReadonlyMap<string, string>

function auditHtml(given: Given, acts: readonly OperatorLogEntry[], next: OperatorLogPosition | null): HtmlValue {
  const addressOf = (fields: Iterable<[string, string]>) => String(new URLSearchParams([...fields]))
  const older = next && html`<p><a href="/audit?${addressOf([...given, ...Object.entries(next)])}">Older</a></p>`
  const csv = addressOf([...given].filter(([name]) => name !== 'who'))
  const none = given.size > 0 ? 'No act matches.' : 'No operator has changed anything yet.'
  return html`${filterForm(given)}
<section id="acts" data-live>${acts.length === 0 ? nothingToShow(none) : actsTable(acts)}${older}</section>
<p class="quiet"><a href="/audit.csv?${csv}" download>As CSV</a>: a line per record that ended in this time, with its amounts, the times of its steps, and what
operators did, like <code>outboxd audit --csv</code>. Downloads are logged.</p>`
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
    acts.map(({ atMs, who, what, untilMs, records, detail, reason, account }) => [
      instantHtml(atMs),
      escapeControl(who),
      html`${escapeControl(what + actFacts(what, detail))}${untilMs === null ? '' : html` until ${instantHtml(untilMs)}`}`,
      recordsCell(records, detail?.unnamed),
      reason === null ? '' : html`<span class="foreign reason">${escapeControl(reason)}</span>`,
      escapeControl(account ?? ''),
    ]),
  )
}

const recordsShown = 5

function recordsCell(records: readonly RecordOfAct[], unnamed: unknown): HtmlValue {
  if (unnamed === 'all') return 'all records'
  const links = records.slice(0, recordsShown).map(({ id, outboxId, type, key }, i) => {
    const name = html`<a href="/records/${encodeURIComponent(id ?? `outbox:${outboxId}`)}">${escapeControl(`outbox:${outboxId}`)}</a>`
    return html`${i > 0 ? ', ' : ''}${name} ${escapeControl(type)}${key === null ? '' : `, key ${cutAndEscapeText(key, 40)}`}`
  })
  const more = Math.max(0, records.length - recordsShown) + Number(unnamed ?? 0)
  return more > 0 ? [links, ` and ${more} more`] : links
}
