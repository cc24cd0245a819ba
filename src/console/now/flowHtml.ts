import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import type { State } from '../../model.ts'
import type { StatusReport } from '../../operations/diagnose.ts'
import { backlogMessage, dueReportsMessage, heldRecordsMessage } from '../../operations/renderStatus.ts'
import { escapeControl, truncate } from '../../plainText.ts'
import { ageHtml } from '../html/elements.ts'

function outboxTrouble(outbox: StatusReport['outbox']): HtmlValue {
  if (outbox.kind !== 'unreadable') return ''
  return html`<div><dt>Outbox</dt><dd>${escapeControl(truncate(outbox.problem, 400))}</dd></div>`
}

interface Step {
  name: string
  count: number | null
  oldestMs: number | null
  state: State | 'sending,accepted' | null
  tone?: 'good' | 'bad' | 'attention'
}

export function flowSection(report: StatusReport): HtmlSafeString {
  const { under, ended } = stepsOf(report)
  const held = heldRecordsMessage(report.heldForPerson).replace(/^; /, '')
  return html`<h2>Records</h2>
<ol class="flow">${under.map((step) => stepHtml(step, report.nowMs))}</ol>
<ul class="flow ends">${ended.map((step) => stepHtml(step, report.nowMs))}</ul>
<dl>
${outboxTrouble(report.outbox)}
<div><dt>Backlog</dt><dd>${backlogMessage(report)}</dd></div>
${held === '' ? '' : html`<div><dt>Held</dt><dd>${held}</dd></div>`}
<div><dt>To write back</dt><dd>${dueReportsMessage(report)}</dd></div>
</dl>`
}

function stepsOf({ submissions, outbox, ...report }: StatusReport): { under: Step[]; ended: Step[] } {
  const of = (state: State, oldestMs: number | null = null): Step => {
    const count = submissions[state]
    return { name: names[state], count, oldestMs: count > 0 ? oldestMs : null, state }
  }
  const waiting = outbox.kind === 'read' ? outbox.outbox : { waiting: null, oldestMs: null }
  const atService = submissions.accepted + report.probing
  const needingAttention = (state: State): Step => ({
    ...of(state),
    ...(submissions[state] > 0 ? { tone: 'bad' } : {}),
  })
  return {
    under: [
      { name: 'in the outbox', count: waiting.waiting, oldestMs: waiting.oldestMs, state: null },
      of('queued', report.oldestUnsentMs),
      { ...of('sending'), count: submissions.sending - report.probing },
      {
        name: names.accepted,
        count: atService,
        oldestMs: atService > 0 ? report.oldestAcceptedMs : null,
        state: report.probing > 0 ? 'sending,accepted' : 'accepted',
      },
    ],
    ended: [
      { ...of('completed'), tone: 'good' },
      needingAttention('uncertain'),
      needingAttention('failed'),
      needingAttention('rejected'),
      of('discarded'),
    ],
  }
}

const names: Record<State, string> = {
  queued: 'queued',
  sending: 'sending',
  accepted: 'at the service',
  completed: 'completed',
  uncertain: 'uncertain',
  failed: 'failed',
  rejected: 'rejected',
  discarded: 'discarded',
}

function stepHtml({ name, count, oldestMs, state, tone }: Step, nowMs: number): HtmlSafeString {
  const number: HtmlValue = count === null ? 'not known' : count.toLocaleString('en')
  const figure = html`<span class="figure number ${tone ?? ''}">${number}</span> <span class="step">${name}</span>`
  return html`<li>${state === null ? html`<span>${figure}</span>` : html`<a href="/records?state=${state}">${figure}</a>`}${
    oldestMs === null ? '' : html`<small>oldest ${ageHtml(oldestMs, nowMs)}</small>`
  }</li>\n`
}
