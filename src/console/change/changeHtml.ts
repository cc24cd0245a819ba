import { type HtmlValue, html } from '@prairielearn/html'
import { changedAtOnceMax, replayCostMessage, type Skipped } from '../../operations/bulkChange.ts'
import { arrivalNote } from '../../operations/submissionFacts.ts'
import { pluralize } from '../../plainText.ts'
import type { Viewer } from '../guard/viewer.ts'
import { foreignTextHtml, notice, paragraph, section, table } from '../html/elements.ts'
import { checkbox, form, type OptionName, optionLabel } from '../html/form.ts'
import { layout } from '../html/layout.ts'
import { recordTable } from '../records/recordsHtml.ts'
import { recordsPath } from '../records/recordsQuery.ts'
import type { KeptChange } from './changeStore.ts'

export function renderChange(change: KeptChange, viewer: Viewer, nowMs: number, problem: string | null = null): string {
  const { request, progress } = change
  const words = { previewed: 'Preview', running: 'Under way', over: 'Done', failed: 'Failed' }[progress.kind]
  const back = html`<p><a href="${backPath(change)}">Back to the records</a></p>`
  return layout({ title: `${words}: ${request.verb}`, current: '/records', viewer }, [
    problem === null ? '' : notice('bad', paragraph(problem)),
    progress.kind === 'previewed' ? previewOf(change, viewer, nowMs) : courseOf(change),
    progress.kind === 'previewed' ? '' : back,
  ])
}

export function renderRefusedChange(problems: readonly string[], viewer: Viewer): string {
  return layout({ title: 'Nothing was changed', current: '/records', viewer }, [
    notice('bad', problems.map(paragraph)),
    html`<p><a href="/records">Records</a></p>`,
  ])
}

const backPath = ({ request: { filters } }: KeptChange) =>
  recordsPath({ filters, order: 'longest', byCause: false, from: null })

function previewOf(change: KeptChange, viewer: Viewer, nowMs: number): HtmlValue {
  const { preview, skipped, untried, cost, cut } = change
  const { verb, count, groups, first, isCapped, risk } = preview
  const untriedWords = `The last ${pluralize(untried, 'record')} were not mapped beforehand and are counted as if they mapped. Those that do not map are skipped and named.`
  const warnings = [
    untried > 0 ? untriedWords : '',
    isCapped ? `At most ${changedAtOnceMax} records are changed at once. Repeat it for the rest.` : '',
    cut ?? '',
    risk,
  ].filter((words) => words !== '')
  const listed = [
    cost === null ? '' : html`<p>${replayCostMessage(cost)}</p>`,
    kindsTable(groups),
    html`<h3>${first.length === count ? 'All of them' : `The first ${first.length} of ${count}`}</h3>`,
    recordTable('The first records', first, nowMs),
  ]
  return [
    section('would', `This would ${verb} ${howMany(change)}`, [
      warnings.map((words) => notice('attention', paragraph(words))),
      count === 0 ? '' : listed,
      skipped.length === 0
        ? ''
        : html`<h3>${pluralize(skipped.length, 'record')} would be skipped</h3>${skippedList(skipped)}`,
    ]),
    verb === 'replay' ? termsForm(change, viewer) : '',
    confirmation(change, viewer),
  ]
}

const howMany = ({ untried, preview: { count } }: KeptChange) =>
  `${untried > 0 ? 'up to ' : ''}${pluralize(count, 'record')}`

const kindsTable = (groups: KeptChange['preview']['groups']) =>
  table(
    'How many of each kind',
    [{ number: 'Records' }, 'State', 'Type', 'Code', 'Note'],
    groups.map((group) => [
      group.count,
      group.state,
      foreignTextHtml(group.type, 24),
      group.code === null ? '–' : foreignTextHtml(group.code, 16),
      group.mayHaveArrived ? html`<strong class="attention">${arrivalNote(group)}</strong>` : '',
    ]),
  )

function termsForm({ token, request: { terms, ids } }: KeptChange, viewer: Viewer): HtmlValue {
  const term = (name: OptionName, isOn: boolean, words: string) =>
    html`<p>${checkbox(name, html`<span><b>${optionLabel(name)}</b>: ${words}</span>`, { isOn })}</p>`
  const fields = [
    term('refresh', terms.refresh, 'take payload, type and key from the outbox row as it is now'),
    ids.length > 0
      ? ''
      : term('even-if-arrived', terms.evenIfArrived, 'a record that did arrive may then be at the service twice'),
    term(
      'new-key',
      terms.newKey,
      'for records that may have arrived. Warning: the service cannot recognise a repetition, and may process it twice',
    ),
    html`<button>Preview again</button>`,
  ]
  return section('terms', 'Options', form({ action: `/records/change/${token}/again`, viewer, class: 'terms' }, fields))
}

function confirmation(change: KeptChange, viewer: Viewer): HtmlValue {
  const { verb, count } = change.preview
  if (count === 0)
    return html`<section>${notice('quiet', html`<p>There is nothing to ${verb}.</p>`)}<p><a href="/records">Records</a></p></section>`
  const isDiscard = verb === 'discard'
  const words = `${isDiscard ? 'Discard' : 'Replay'} ${howMany(change)}`
  const reason = html`<label class="wide">Reason${isDiscard ? ', kept with each record' : ', if there is one'}
<input name="reason" maxlength="1000"${isDiscard ? html` required` : ''}></label>`
  const button = html`<button class="${isDiscard ? 'grave' : 'main'}">${words}</button> <a href="/records">Cancel: change nothing</a>`
  return section('confirm', `${words}?`, [
    html`<p class="quiet">This changes the records as shown here. A record that changes before is skipped and named.</p>`,
    form({ action: `/records/change/${change.token}`, viewer }, [reason, button]),
  ])
}

function courseOf({ preview: { verb, count }, progress, skipped }: KeptChange): HtmlValue {
  if (progress.kind === 'running')
    return html`<section><p>${progress.looked} of ${count} done. This page refreshes itself.</p>
<progress max="${count}" value="${progress.looked}" aria-label="Progress"></progress></section>`
  if (progress.kind === 'failed')
    return notice(
      'bad',
      html`<p>${foreignTextHtml(progress.message, 600)}</p><p>About ${progress.looked} of ${count} were done before; the rest is unchanged. Choose the rest again.</p>`,
    )
  if (progress.kind === 'previewed') return ''
  const { done } = progress.result
  const all = [...skipped, ...progress.result.skipped]
  const rest = count - done.length - progress.result.skipped.length
  const did = `${verb === 'discard' ? 'Discarded' : 'Replayed'} ${pluralize(done.length, 'record')}`
  const aside = all.length > 0 ? `; ${pluralize(all.length, 'record')} skipped` : ''
  return html`${notice(progress.result.skipped.length + rest > 0 ? 'attention' : 'good', html`<p>${did}${aside}.</p>`)}
${rest > 0 ? notice('attention', html`<p>Interrupted: ${pluralize(rest, 'record')} not changed.</p>`) : ''}
${all.length > 0 ? html`<section><h2>Skipped</h2>${skippedList(all)}</section>` : ''}`
}

const reasonsShown = 50
const namedShown = 20

function skippedList(skipped: readonly Skipped[]): HtmlValue {
  const alike = [...Map.groupBy(skipped, ({ reason }) => reason)].sort(([, a], [, b]) => b.length - a.length)
  const items = alike.slice(0, reasonsShown).map(([reason, all]) => {
    const count = all.length > 1 ? html`<b>${pluralize(all.length, 'record')}</b>: ` : ''
    const more = all.length > namedShown ? ` and ${all.length - namedShown} more` : ''
    const named = all.slice(0, namedShown).map(({ submission }) => [linkTo(submission), ' '])
    return html`<li>${count}${named}${more} ${foreignTextHtml(reason, 400)}</li>`
  })
  const unnamed = alike.slice(reasonsShown).reduce((sum, [, all]) => sum + all.length, 0)
  return html`<ul>${items}${unnamed > 0 ? html`<li>… and ${pluralize(unnamed, 'record')} more, for other reasons</li>` : ''}</ul>`
}

const linkTo = ({ id, outboxId }: Skipped['submission']) =>
  html`<a href="/records/${id}">outbox:${foreignTextHtml(outboxId, 36)}</a>`
