import type { FastifyInstance } from 'fastify'
import type { FailureCause } from '../../ledger/operator/search.ts'
import type { RecentRequestCounts } from '../../ledger/requestCounts.ts'
import type { BudgetUse } from '../../ledger/snapshot.ts'
import type { State } from '../../model/submission.ts'
import {
  countNeedingAttention,
  type Diagnosis,
  type HealthCondition,
  type StatusReport,
  stopsSending,
} from '../../operations/diagnose.ts'
import { countProblems } from '../../operations/problemMessages.ts'
import { backlogClause, dueReportsClause, heldRecordsSuffix, noInstanceClause } from '../../operations/renderStatus.ts'
import {
  formatPercent,
  type ServicePerformance,
  serviceLevelTargets,
  servicePerformanceOf,
  sumRequestCounts,
} from '../../operations/serviceLevelTargets.ts'
import { capitalize, pluralize } from '../../plainText.ts'
import {
  cutAndEscapeText,
  descriptionListHtml,
  nothingToShow,
  notice,
  relativeTimeHtml,
  stateIcon,
  table,
  untrustedParagraphHtml,
  untrustedTextHtml,
} from '../html/elements.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import { renderPage, sendPage, versionOf } from '../html/layout.ts'
import { type ConsoleParts, nowPageVersionPath, shareRecentRead } from '../parts.ts'
import { addPauseRoutes, pauseForms, pausesSection } from '../pausePage.ts'
import { causesTable } from '../records/recordsPage.ts'
import { budgetSection } from './budgetHtml.ts'
import { chartsHtml } from './charts.ts'
import { createNowPageReader, type NowPageData } from './readNow.ts'

/** With the script's look every 0.5 s, a daemon that is silent for 5 s shows within 6 s. */
const viewAgeMs = 400

/** assets/console.js counts ages on, so they make no new version. */
const ageTextPattern = /(<time data-age[^>]*>)[^<]*/g

export function addNowRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const readAnew = () => {
    const readView = createNowPageReader(parts)
    return shareRecentRead(parts.clock, viewAgeMs, async () => {
      const view = await readView()
      return { view, version: versionOf(renderView(view, '').toString().replace(ageTextPattern, '$1')) }
    })
  }
  let readPage = readAnew()
  app.get(nowPageVersionPath, { config: { isPolled: true } }, async () => ({ version: (await readPage()).version }))
  app.get('/', async ({ viewer }, reply) => {
    const { view, version } = await readPage()
    const head = { title: 'Overview', current: '/', viewer, live: { path: nowPageVersionPath, version } } as const
    return sendPage(reply, renderPage(head, renderView(view, pauseForms(viewer))))
  })
  addPauseRoutes(app, parts, () => {
    readPage = readAnew()
  })
}

const live = (id: string, content: HtmlValue) => html`<div id="${id}" data-live>${content}</div>`

/** The same for all viewers, except for the forms. */
function renderView(data: NowPageData, forms: HtmlValue): HtmlPart {
  const { report, budget, needingAttention, lastHour } = data
  const { nowMs, standing } = report
  const isNew = Object.values(report.submissions).every((count) => count === 0)
  const unlessNew = (content: HtmlValue) => (isNew ? '' : html`<section>${content}</section>`)
  return html`${live('sentences', isNew ? newInstallation(data) : report.diagnoses.map(sentence))}
<div class="wide-and-narrow">
${live('person', unlessNew(attentionSection(needingAttention, countNeedingAttention(report), nowMs)))}
${live('records', unlessNew(recordsSection(report)))}
</div>
${live('charts', isNew ? '' : chartsHtml(lastHour, limitAMinute(budget)))}
<div class="side-by-side">
${live('budget', unlessNew(budgetSection(budget)))}
<section>${live('pauses', pausesSection(report.pauses, nowMs))}${forms}</section>
</div>
<div class="side-by-side">
${live('targets', unlessNew(serviceTargetsSection(report.recent)))}
${live('daemons', unlessNew(instancesSection(report)))}
</div>
${live('problems', standing.length === 0 ? '' : html`<section>${problemsSection(report)}</section>`)}`
}

/** Null if the limit is not one of a minute: a line would mislead. */
const limitAMinute = ({ limit, windowMs }: BudgetUse) => (limit > 0 && windowMs === 60_000 ? limit : null)

/** What is left to do until the first record. What the checklist does not say stands above it. */
function newInstallation({ report, mappingFiles }: NowPageData): HtmlValue {
  const { outbox, instances, diagnoses, daemonConnected } = report
  const others = diagnoses.filter((each) => {
    if (each.isWell || each.condition === 'the outbox can be read') return false
    return each.condition !== 'a daemon lives' || daemonConnected
  })
  const waiting = outbox.kind === 'read' ? outbox.outbox.waiting : 0
  const types = mappingFiles.kind === 'value' ? [...mappingFiles.mappings.keys()] : []
  return [
    others.map(sentence),
    html`<section><h2>Until the first record</h2>
<ol class="checklist">
${checkItem(outbox.kind === 'read', 'Database', databaseWords(report))}
${checkItem(types.length > 0, 'Mapping', mappingWords(mappingFiles, types))}
${checkItem(instances.length > 0, 'Daemon', instances.length > 0 ? `${pluralize(instances.length, 'daemon')} running` : 'Start one with `outboxd run`. `outboxd check` says what would prevent it.')}
${checkItem(waiting > 0, 'First row', waiting > 0 ? `${pluralize(waiting, 'row')} of the outbox to capture` : 'Insert a row into the outbox.')}
</ol></section>`,
  ]
}

function databaseWords(report: StatusReport): string {
  if (report.outbox.kind === 'read') return 'The ledger and the outbox can be read.'
  const said = report.diagnoses.find((each) => !each.isWell && each.condition === 'the outbox can be read')
  return said?.message ?? ''
}

function mappingWords(files: NowPageData['mappingFiles'], types: readonly string[]): string {
  if (files.kind === 'invalid') return files.problem
  return types.length > 0 ? `Rows of the type ${types.join(', ')} are mapped.` : 'There is no mapping file.'
}

const checkItem = (isDone: boolean, name: string, words: string) =>
  html`<li><span role="img" aria-label="${isDone ? 'done' : 'to do'}" class="${isDone ? 'good' : 'quiet'}">${isDone ? '✓' : '○'}</span>
<strong>${name}</strong>: ${cutAndEscapeText(words, 400)}</li>`

const pageOf: Partial<Record<HealthCondition, { path: string; words: string }>> = {
  'no other pause': { path: '/resume', words: 'Resume' },
  'no record needs attention': { path: '/records?by-cause=on', words: 'Records' },
  'no record is late': { path: '/records?state=queued,sending,accepted', words: 'Records' },
}

function sentence(diagnosis: Diagnosis): HtmlPart {
  if (diagnosis.isWell) return notice('good', untrustedParagraphHtml(diagnosis.message))
  const page = pageOf[diagnosis.condition]
  const link = page === undefined ? '' : html`<p><a href="${page.path}">${page.words}</a></p>`
  return notice(stopsSending(diagnosis) ? 'bad' : 'attention', [untrustedParagraphHtml(diagnosis.message), link])
}

const causesShown = 8

/** @param count the present number of records. The causes may be older. */
export function attentionSection(
  { causes, lookedAt, isCut }: NowPageData['needingAttention'],
  count: number,
  nowMs: number,
): HtmlPart {
  if (count === 0) return html`<h2>Needs attention</h2>${nothingToShow('No record needs attention.')}`
  if (causes.length === 0)
    return html`<h2>Needs attention</h2>${nothingToShow(`${pluralize(count, 'record')}. The causes follow within 10 seconds.`)}`
  const more = causes.length - causesShown
  const pathOf = ({ state, cause }: FailureCause) => `/records?state=${state}&cause=${cause}`
  return html`<h2>Needs attention</h2>
${causesTable(causes.slice(0, causesShown), pathOf, nowMs)}
${more > 0 ? html`<p><a href="/records?by-cause=on">${pluralize(more, 'more cause')}</a></p>` : ''}
${isCut ? html`<p class="quiet">Only the newest ${lookedAt.toLocaleString('en')} records that need attention were read.</p>` : ''}`
}

const problemsShown = 20

function problemsSection({ standing, problems, nowMs }: StatusReport): HtmlPart {
  const more = countProblems(standing, problems) - problemsShown
  const rows = standing
    .slice(0, problemsShown)
    .map(({ kind, subject, detail, sinceMs, retryMs }) => [
      kind,
      untrustedTextHtml(subject, 40),
      untrustedTextHtml(detail, 400),
      relativeTimeHtml(sinceMs, nowMs),
      retryMs === null ? '' : retryMs <= nowMs ? 'now' : relativeTimeHtml(retryMs, nowMs),
    ])
  return html`<h2>Problems</h2>
${table('problems', ['kind', 'subject', 'detail', 'since', 'next try'], rows)}
${more > 0 ? html`<p>And ${more} more: <code>outboxd status --json</code> lists them.</p>` : ''}`
}

export function serviceTargetsSection(recent: RecentRequestCounts): HtmlPart {
  const times = [
    ['hour', recent.lastHour],
    ['day', recent.lastDay],
    ['28\u00a0days', recent.last28Days],
  ] as const
  const rows = times.map(([name, counts]) => rowOf(name, servicePerformanceOf(sumRequestCounts(counts))))
  return html`<h2>The service, against its targets</h2>
${table(
  'the service against its targets',
  ['last', { number: 'requests' }, { number: 'succeeded' }, { number: `in ${serviceLevelTargets.answerSeconds} s` }],
  rows,
)}`
}

function rowOf(name: string, { counts, successShare, fastShare }: ServicePerformance): HtmlValue[] {
  return [
    name,
    counts.requests.toLocaleString('en'),
    against(successShare, serviceLevelTargets.successShare),
    against(fastShare, serviceLevelTargets.fastShare),
  ]
}

function against(share: number | null, target: number): HtmlValue {
  if (share === null) return html`<span class="quiet">none</span>`
  return share < target ? html`<span class="bad">below: ${formatPercent(share)}</span>` : formatPercent(share)
}

function instancesSection(report: StatusReport): HtmlPart {
  const { instances, nowMs } = report
  if (instances.length === 0) return html`<h2>Daemons</h2>${nothingToShow(`${capitalize(noInstanceClause(report))}.`)}`
  return html`<h2>Daemons</h2>
${table(
  'running daemons',
  ['id', 'host', 'version', 'started'],
  instances.map(({ id, host, version, startedMs }) => [
    html`<code>${id.slice(0, 8)}</code>`,
    untrustedTextHtml(host, 40),
    version,
    relativeTimeHtml(startedMs, nowMs),
  ]),
)}`
}

function recordsSection(report: StatusReport): HtmlPart {
  const { submissions, outbox, probing, nowMs } = report
  const waiting = outbox.kind === 'read' ? outbox.outbox : { waiting: null, oldestMs: null }
  const ended = (['completed', 'uncertain', 'failed', 'rejected', 'discarded'] as const).map((state) =>
    lineHtml({ name: state, icon: state, count: submissions[state], filter: state }, nowMs),
  )
  const held = heldRecordsSuffix(report.heldForPerson).replace(/^; /, '')
  return html`<h2>Records</h2>
<ul class="counts">
${lineHtml({ name: 'in the outbox', icon: 'outbox', count: waiting.waiting, oldestMs: waiting.oldestMs }, nowMs)}
${lineHtml({ name: 'queued', icon: 'queued', count: submissions.queued, oldestMs: report.oldestUnsentMs, filter: 'queued' }, nowMs)}
${lineHtml({ name: 'sending', icon: 'sending', count: submissions.sending - probing, filter: 'sending' }, nowMs)}
${lineHtml(
  {
    ...{ name: 'at the service', icon: 'accepted', count: submissions.accepted + probing },
    ...{ oldestMs: report.oldestAcceptedMs, filter: probing > 0 ? 'sending,accepted' : 'accepted' },
  },
  nowMs,
)}
${ended}
</ul>
${descriptionListHtml([
  ['Outbox', outbox.kind === 'unreadable' ? cutAndEscapeText(outbox.problem, 400) : null],
  ['Backlog', report.backlog?.records === 0 ? null : backlogClause(report)],
  ['Held', held || null],
  ['To write back', report.reportsDue === 0 ? null : dueReportsClause(report)],
])}`
}

interface Line {
  name: string
  icon: State | 'outbox'
  /** Null if it is not known. */
  count: number | null
  oldestMs?: number | null
  /** The list's filter; undefined for rows that are not captured. */
  filter?: string
}

function lineHtml({ name, icon, count, oldestMs = null, filter }: Line, nowMs: number): HtmlPart {
  const figure: HtmlValue = count === null ? 'not known' : count.toLocaleString('en')
  const oldest =
    oldestMs === null || count === 0 ? '' : html` <small>oldest ${relativeTimeHtml(oldestMs, nowMs)}</small>`
  const words = html`${stateIcon(icon)}<span class="step">${name}${oldest}</span>`
  const content = filter === undefined ? words : html`<a href="/records?state=${filter}">${words}</a>`
  return html`<li class="${count === 0 ? 'none' : ''}">${content}<span class="number">${figure}</span></li>\n`
}
