import type { FastifyInstance } from 'fastify'
import type { BudgetUse } from '../../ledger/snapshot.ts'
import type { State } from '../../model/submission.ts'
import { countNeedingAttention, type Diagnosis, type StatusReport, stopsSending } from '../../operations/diagnose.ts'
import { backlogClause, dueReportsClause, heldRecordsClause } from '../../operations/renderStatus.ts'
import { formatPercent, servicePerformanceOf, sumRequestCounts } from '../../operations/serviceLevelTargets.ts'
import { pluralize } from '../../plainText.ts'
import { formatDuration } from '../../time.ts'
import type { Viewer } from '../guard/installGuard.ts'
import {
  cutAndEscapeText,
  descriptionListHtml,
  icon,
  liveHtml,
  nothingToShow,
  notice,
  relativeTimeHtml,
  section,
  type Tone,
  textWithCode,
  untrustedLinesHtml,
} from '../html/elements.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import { sendPage, versionOf } from '../html/layout.ts'
import { type ConsoleParts, overviewVersionPath, shareRecentRead } from '../parts.ts'
import { addPauseRoutes, pausesHtml } from '../pausePage.ts'
import { causesList } from '../records/recordTable.ts'
import { renderSystem } from '../system/systemPage.ts'
import { chartsHtml } from './charts.ts'
import { createOverviewReader, type OverviewData } from './readOverview.ts'

/** With the script's look every 0.5 s, a daemon that is silent for 5 s shows within 6 s. */
const viewAgeMs = 400

/** assets/console.js counts ages on, so they make no new version. */
const ageTextPattern = /(<time data-age[^>]*>)[^<]*/g

const pages = [
  { path: '/', title: 'Overview', versionPath: overviewVersionPath, render: renderOverview },
  { path: '/system', title: 'System', versionPath: '/system/version', render: renderSystem },
] as const

/** Overview and System show the same reads. */
export function addOverviewRoutes(app: FastifyInstance, parts: ConsoleParts): void {
  const readAnew = () => {
    const readData = createOverviewReader(parts)
    return shareRecentRead(parts.clock, viewAgeMs, async () => {
      const data = await readData()
      const texts = pages.map(({ render }) => render(data, null).toString().replace(ageTextPattern, '$1'))
      return { data, versions: texts.map(versionOf) }
    })
  }
  let read = readAnew()
  for (const [i, { path, title, versionPath, render }] of pages.entries()) {
    app.get(versionPath, { config: { isPolled: true } }, async () => ({ version: (await read()).versions[i] }))
    app.get(path, async ({ viewer }, reply) => {
      const { data, versions } = await read()
      const heading = html`<h1 class="${path === '/' ? 'unseen' : ''}">${title}</h1>`
      const live = { path: versionPath, version: versions[i] ?? '' }
      return sendPage(reply, { title, heading, live }, render(data, viewer))
    })
  }
  addPauseRoutes(app, parts, () => {
    read = readAnew()
  })
}

/** The same for all viewers, except for the buttons. */
function renderOverview(data: OverviewData, viewer: Viewer | null): HtmlPart {
  const { report, budget, needingAttention, lastHour } = data
  const { nowMs, diagnoses } = report
  const isNew = Object.values(report.submissions).every((count) => count === 0)
  const unlessNew = (content: HtmlValue) => (isNew ? '' : content)
  const [first, ...others] = diagnoses
  const count = countNeedingAttention(report)
  const above = [
    // Before the first record, only a pause has a verdict: an operator can end it.
    isNew && report.pauses.length === 0 ? '' : verdict(first, data, viewer),
    isNew ? newInstallation(data, viewer) : others.filter(isNotShownBelow).map(sentence),
    pausesHtml(report.pauses, nowMs),
  ]
  return html`${liveHtml('verdict', above)}
<div class="wide">
${liveHtml('person', unlessNew(attentionSection(needingAttention, count, nowMs)))}
${liveHtml('records', unlessNew(recordsSection(report)))}
</div>
${liveHtml('charts', unlessNew(chartsHtml(lastHour, limitAMinute(budget))))}
${liveHtml('strip', unlessNew(strip(report)))}`
}

/** Null if the limit is not one of a minute: a line would mislead. */
const limitAMinute = ({ limit, windowMs }: BudgetUse) => (limit > 0 && windowMs === 60_000 ? limit : null)

/** What is left to do until the first record. What the checklist does not say stands above it. */
function newInstallation({ report, mappingFiles }: OverviewData, viewer: Viewer | null): HtmlValue {
  const { outbox, instances, diagnoses, daemonConnected } = report
  const unreadable = diagnoses.find((each) => !each.isWell && each.condition === 'the outbox can be read')
  const others = diagnoses.filter((each) => {
    if (each.isWell || each === unreadable) return false
    return each.condition !== 'a daemon lives' || daemonConnected
  })
  const waiting = outbox.kind === 'read' ? outbox.outbox.waiting : 0
  const types = mappingFiles.kind === 'value' ? [...mappingFiles.mappings.keys()] : []
  const noMapping = mappingFiles.kind === 'invalid' ? mappingFiles.problem : 'There is no mapping file.'
  return [
    others.map(sentence),
    html`<section><h2>Until the first record${viewer?.canChange ? pauseButton : ''}</h2>
<ol class="checklist">
${checkItem('Database', outbox.kind === 'read' ? 'The ledger and the outbox can be read.' : null, unreadable?.message)}
${checkItem('Mapping', types.length > 0 ? `Rows of the type ${types.join(', ')} are mapped.` : null, noMapping)}
${checkItem('Daemon', instances.length > 0 ? `${pluralize(instances.length, 'daemon')} running` : null, startDaemonWords)}
${checkItem('First row', waiting > 0 ? `${pluralize(waiting, 'row')} of the outbox to capture` : null, 'Insert a row into the outbox.')}
</ol></section>`,
  ]
}

const startDaemonWords = 'Start one with `outboxd run`. `outboxd check` says what would prevent it.'

const checkItem = (name: string, done: string | null, toDo = '') =>
  html`<li>${done === null ? toDoSign : doneSign}
<strong>${name}</strong>: ${textWithCode(done ?? toDo)}</li>`

const doneSign = html`<span role="img" aria-label="done" class="good">✓</span>`
const toDoSign = html`<span role="img" aria-label="to do" class="quiet">○</span>`

const pauseButton = html`<a class="button" href="/pause" data-dialog>Pause sending…</a>`

const isNotShownBelow = (diagnosis: Diagnosis) =>
  diagnosis.isWell || diagnosis.condition !== 'no record needs attention'

const sentence = (diagnosis: Diagnosis) => notice(toneOf(diagnosis), diagnosis.message)

function toneOf(diagnosis: Diagnosis): Tone {
  if (diagnosis.isWell) return 'good'
  return stopsSending(diagnosis) ? 'bad' : 'attention'
}

const splitSentence = (text: string): [first: string, more?: string] => {
  const end = text.indexOf('. ')
  return end < 0 ? [text] : [text.slice(0, end + 1), text.slice(end + 2)]
}

/** Says in one sentence whether records are sent, and whether somebody is needed. */
function verdict(first: Diagnosis, { report, budget }: OverviewData, viewer: Viewer | null): HtmlPart {
  const { instances, pauses, oldestMs, nowMs } = report
  const count = countNeedingAttention(report)
  const [title, more] = isNotShownBelow(first)
    ? splitSentence(first.message)
    : [`Sending normally. ${pluralize(count, 'record')} need${count === 1 ? 's' : ''} you.`]
  const daemons = instances.length === 0 ? 'no daemon' : pluralize(instances.length, 'daemon')
  const used = `${budget.limit - budget.free} of ${budget.limit} requests used in ${formatDuration(budget.windowMs)}`
  const resumePath = pauses.some(({ reason }) => reason === 'operator') ? '/resume' : '/resume?all=on'
  const resume = html`<a class="button" href="${resumePath}" data-dialog>Resume…</a>`
  return html`<section class="verdict notice ${toneOf(first)}"><div>${untrustedLinesHtml(title)}${more && untrustedLinesHtml(more)}
<p class="quiet">Oldest unsent: ${oldestMs === null ? 'none' : relativeTimeHtml(oldestMs, nowMs)} · ${budget.limit === 0 ? 'no budget yet' : used} · <a href="/system">${daemons}</a></p></div>
${viewer?.canChange ? html`<div class="actions">${pauses.length > 0 ? resume : ''}${pauseButton}</div>` : ''}</section>`
}

const causesShown = 8

/** @param count the present number of records. The causes may be older. */
export function attentionSection(
  { causes, lookedAt, isCut }: OverviewData['needingAttention'],
  count: number,
  nowMs: number,
): HtmlPart {
  const more = causes.length - causesShown
  const content = [
    causesList(causes, {}, nowMs, causesShown),
    more > 0 ? html`<p><a href="/records?by-cause=on">${pluralize(more, 'more cause')}</a></p>` : '',
    isCut
      ? html`<p class="quiet">Only the newest ${lookedAt.toLocaleString('en')} records that need attention were read.</p>`
      : '',
  ]
  const soon =
    count === 0 ? 'No record needs attention.' : `${pluralize(count, 'record')}. The causes follow within 10 seconds.`
  const title = html`Needs attention <b class="count">${count === 0 ? '' : count.toLocaleString('en')}</b> <small>by cause, undecided first</small>`
  return section('attention', title, count === 0 || causes.length === 0 ? nothingToShow(soon) : content)
}

function recordsSection(report: StatusReport): HtmlPart {
  const { submissions, outbox, probing, oldestUnsentMs, oldestAcceptedMs, nowMs } = report
  const waiting = outbox.kind === 'read' ? outbox.outbox : { waiting: null, oldestMs: null }
  const all = Object.values(submissions).reduce((sum, count) => sum + count, 0)
  const { accepted } = submissions
  const atService = probing > 0 ? 'sending,accepted' : 'accepted'
  const lines: Line[] = [
    { name: 'in the outbox', icon: 'outbox', count: waiting.waiting, oldestMs: waiting.oldestMs },
    { name: 'queued', icon: 'queued', count: submissions.queued, oldestMs: oldestUnsentMs, states: 'queued' },
    { name: 'sending', icon: 'sending', count: submissions.sending - probing, states: 'sending' },
    {
      name: 'at the service',
      icon: 'accepted',
      count: accepted + probing,
      oldestMs: oldestAcceptedMs,
      states: atService,
    },
    ...endStates.map((state) => ({ name: state, icon: state, count: submissions[state], states: state })),
  ]
  return section(
    'records',
    html`Records <small>all ${all.toLocaleString('en')}</small>`,
    html`<ul class="counts">${lines.map((line) => lineHtml(line, nowMs))}</ul>
${descriptionListHtml([
  ['Outbox', outbox.kind === 'unreadable' ? cutAndEscapeText(outbox.problem, 400) : null],
  ['Backlog', report.backlog?.records === 0 ? null : backlogClause(report)],
  ['Held', report.heldForPerson === 0 ? null : heldRecordsClause(report.heldForPerson)],
  ['To write back', report.reportsDue === 0 ? null : dueReportsClause(report)],
])}`,
  )
}

const endStates = ['completed', 'uncertain', 'failed', 'rejected', 'discarded'] as const

interface Line {
  name: string
  icon: State | 'outbox'
  /** Null if it is not known. */
  count: number | null
  oldestMs?: number | null
  /** Those of the list that the line leads to; undefined for rows that are not captured. */
  states?: string
}

function lineHtml({ name, icon: which, count, oldestMs = null, states }: Line, nowMs: number): HtmlPart {
  const hasOldest = oldestMs !== null && count !== 0
  const oldest = hasOldest ? html` <small>oldest ${relativeTimeHtml(oldestMs, nowMs)}</small>` : ''
  const words = html`${icon(which)}<span class="step">${name}${oldest}</span>`
  const linked = states === undefined ? words : html`<a href="/records?state=${states}">${words}</a>`
  return html`<li class="${count === 0 ? 'none' : ''}">${linked}<span class="number">${count?.toLocaleString('en') ?? 'not known'}</span></li>\n`
}

function strip({ recent, outbox, reportsDue, pauses, standing }: StatusReport): HtmlPart {
  const { successShare, fastShare } = servicePerformanceOf(sumRequestCounts(recent.last28Days))
  const share = (of: number | null) => html`<b>${of === null ? 'none' : formatPercent(of)}</b>`
  return html`<section class="strip"><span>Service, 28 days: ${share(successShare)} succeeded, ${share(fastShare)} within 2 s</span>
<span>Outbox <b>${outbox.kind === 'read' ? 'ok' : 'not read'}</b></span>
<span>To write back <b>${reportsDue || 'none'}</b></span>
<span>Pauses <b>${pauses.length || 'none'}</b></span>
<span>Problems <b>${standing.length || 'none'}</b></span> <a href="/system">System</a></section>`
}
