import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import type { Cause } from '../../ledger/operator/search.ts'
import type { RecentRequestCounts } from '../../ledger/requestCounts.ts'
import type { Problem } from '../../model.ts'
import type { Diagnosis, HealthCondition, StatusReport } from '../../operations/diagnose.ts'
import { whyNoInstance } from '../../operations/renderStatus.ts'
import {
  addRequestCounts,
  type Performance,
  percent,
  performanceFromCounts,
  serviceTargets,
} from '../../operations/serviceTargets.ts'
import { capitalize, pluralize } from '../../plainText.ts'
import type { Viewer } from '../guard/viewer.ts'
import { ageHtml, emptyNote, foreignTextHtml, notice, paragraph, table } from '../html/elements.ts'
import { layout } from '../html/layout.ts'
import { nowVersionPath } from '../parts.ts'
import { pauseForms, pausesSection } from '../pause/pauseHtml.ts'
import { type BudgetWindow, budgetSection } from './budgetHtml.ts'
import { flowSection } from './flowHtml.ts'

export interface NowView {
  report: StatusReport
  window: BudgetWindow
  needingAttention: NeedingAttention
}

export type LiveParts = Record<(typeof livePlaces)[number], HtmlSafeString>

const livePlaces = ['sentences', 'person', 'flow', 'budget', 'pauses', 'targets', 'daemons', 'problems'] as const

/** Renders the parts that refresh, the same for every viewer. */
export function renderLiveParts({ report, window, needingAttention }: NowView): LiveParts {
  const { nowMs, standing } = report
  return {
    sentences: html`${report.diagnoses.map(sentence)}`,
    person: attentionSection(needingAttention, nowMs),
    flow: flowSection(report),
    budget: budgetSection(window),
    pauses: pausesSection(report.pauses, nowMs),
    targets: targetsSection(report.recent),
    daemons: instancesSection(report),
    problems: standing.length === 0 ? html`` : html`<section>${problemsSection(standing, nowMs)}</section>`,
  }
}

const pageOf: Partial<Record<HealthCondition, { path: string; words: string }>> = {
  'no other pause': { path: '/resume', words: 'Resume' },
  'no record needs attention': { path: '/records?by-cause=on', words: 'Records' },
  'no record is late': { path: '/records?state=queued,sending,accepted', words: 'Records' },
}

function sentence(diagnosis: Diagnosis): HtmlSafeString {
  if (diagnosis.isWell) return notice('good', paragraph(diagnosis.message))
  const page = pageOf[diagnosis.condition]
  const link = page === undefined ? '' : html`<p><a href="${page.path}">${page.words}</a></p>`
  return notice('bad', [paragraph(diagnosis.message), link])
}

interface NowPage {
  parts: LiveParts
  version: string
  history: HtmlSafeString
  viewer: Viewer
}

export function renderNow({ parts, version, history, viewer }: NowPage): string {
  const place = (name: keyof LiveParts): HtmlValue => html`<div id="${name}" data-live>${parts[name]}</div>`
  return layout(
    {
      ...{ title: 'Now', current: '/', viewer },
      live: { path: nowVersionPath, version },
    },
    html`${place('sentences')}
<section>${place('person')}</section>
<section>${place('flow')}</section>
<div class="side-by-side">
<section>${place('budget')}</section>
<section>${place('pauses')}${pauseForms(viewer)}</section>
</div>
<div class="side-by-side">
<section>${place('targets')}</section>
<section>${place('daemons')}</section>
</div>
${place('problems')}
<section><div id="history" data-live>${history}</div></section>`,
  )
}

export interface NeedingAttention {
  causes: readonly Cause[]
  lookedAt: number
  isCut: boolean
}

const causesShown = 8
const problemsShown = 20

export function attentionSection({ causes, lookedAt, isCut }: NeedingAttention, nowMs: number): HtmlSafeString {
  if (causes.length === 0) return html`<h2>Needs attention</h2>${emptyNote('No record needs attention.')}`
  const more = causes.length - causesShown
  const rows = causes
    .slice(0, causesShown)
    .map((cause) => [
      html`<a href="/records?state=${cause.state}&amp;cause=${cause.cause}">${pluralize(cause.count, 'record')}</a>`,
      cause.mayHaveArrived ? `${cause.state}, may have arrived` : cause.state,
      foreignTextHtml(cause.code ?? '', 16),
      foreignTextHtml(cause.shape, 200),
      foreignTextHtml(cause.types.join(', '), 40),
      ageHtml(cause.firstMs, nowMs),
    ])
  return html`<h2>Needs attention</h2>
${table('what needs attention', ['records', 'state', 'code', 'reason', 'type', 'first'], rows)}
${more > 0 ? html`<p><a href="/records">${pluralize(more, 'more cause')}</a></p>` : ''}
${isCut ? html`<p class="quiet">Of the newest ${lookedAt.toLocaleString('en')} that need attention.</p>` : ''}`
}

function problemsSection(problems: readonly Problem[], nowMs: number): HtmlSafeString {
  const more = problems.length - problemsShown
  const rows = problems
    .slice(0, problemsShown)
    .map(({ kind, subject, detail, sinceMs, retryMs }) => [
      kind,
      foreignTextHtml(subject, 40),
      foreignTextHtml(detail, 400),
      ageHtml(sinceMs, nowMs),
      retryMs === null ? '' : retryMs <= nowMs ? 'now' : ageHtml(retryMs, nowMs),
    ])
  return html`<h2>Problems</h2>
${table('problems', ['kind', 'subject', 'detail', 'since', 'next try'], rows)}
${more > 0 ? html`<p>And ${more} more: <code>outboxd status --json</code> lists all.</p>` : ''}`
}

export function targetsSection(recent: RecentRequestCounts): HtmlSafeString {
  const times = [
    ['hour', recent.lastHour],
    ['day', recent.lastDay],
    ['28\u00a0days', recent.last28Days],
  ] as const
  const rows = times.map(([name, counts]) => rowOf(name, performanceFromCounts(addRequestCounts(counts))))
  return html`<h2>The service, against its targets</h2>
${table(
  'the service against its targets',
  ['last', { number: 'requests' }, { number: 'succeeded' }, { number: `in ${serviceTargets.answerSeconds} s` }],
  rows,
)}`
}

function rowOf(name: string, { counts, successShare, fastShare }: Performance): HtmlValue[] {
  return [
    name,
    counts.requests.toLocaleString('en'),
    against(successShare, serviceTargets.successShare),
    against(fastShare, serviceTargets.fastShare),
  ]
}

function against(share: number | null, target: number): HtmlValue {
  if (share === null) return html`<span class="quiet">none</span>`
  return share < target ? html`<span class="bad">below: ${percent(share)}</span>` : percent(share)
}

function instancesSection(report: StatusReport): HtmlSafeString {
  const { instances, nowMs } = report
  if (instances.length === 0) return html`<h2>Daemons</h2>${emptyNote(`${capitalize(whyNoInstance(report))}.`)}`
  return html`<h2>Daemons</h2>
${table(
  'running daemons',
  ['id', 'host', 'version', 'started'],
  instances.map(({ id, host, version, startedMs }) => [
    html`<code>${id.slice(0, 8)}</code>`,
    foreignTextHtml(host, 40),
    version,
    ageHtml(startedMs, nowMs),
  ]),
)}`
}
