import { type HtmlSafeString, type HtmlValue, html } from '@prairielearn/html'
import type { Viewer } from '../guard/viewer.ts'
import { advice } from '../html/advice.ts'
import { layout } from '../html/layout.ts'
import { notice } from '../html/notice.ts'
import { budgetSection } from './budgetHtml.ts'
import { flowSection } from './flowHtml.ts'
import { instancesSection } from './instancesHtml.ts'
import { pauseForms, pausesSection } from './pausesHtml.ts'
import { personSection, problemsSection } from './personHtml.ts'
import type { NowView } from './readNow.ts'
import { targetsSection } from './targetsHtml.ts'

/** The parts that change by themselves, by the ids of their places. */
export type LiveParts = Record<(typeof livePlaces)[number], HtmlSafeString>

const livePlaces = ['sentences', 'person', 'flow', 'budget', 'pauses', 'targets', 'daemons', 'problems'] as const

/** Renders what changes by itself: the same for every viewer. Pure. */
export function liveParts({ report, window, forPerson }: NowView): LiveParts {
  const { nowMs, standing } = report
  const { diagnoses, backlogStandsUntil: _, ...data } = report
  return {
    sentences: html`${diagnoses.map(({ isWell, message }) =>
      notice(isWell ? 'good' : 'bad', html`<p>${advice(message, data)}</p>`),
    )}`,
    person: personSection(forPerson, nowMs),
    flow: flowSection(report),
    budget: budgetSection(window),
    pauses: pausesSection(report.pauses, nowMs),
    targets: targetsSection(report.recent),
    daemons: instancesSection(report),
    problems: standing.length === 0 ? html`` : html`<section>${problemsSection(standing, nowMs)}</section>`,
  }
}

export interface NowPage {
  parts: LiveParts
  /** Of the parts. */
  version: string
  /** The plots of the range that is looked at. */
  history: HtmlSafeString
  viewer: Viewer
}

/** Renders the page. Pure. */
export function renderNow({ parts, version, history, viewer }: NowPage): string {
  const place = (name: keyof LiveParts): HtmlValue => html`<div id="${name}" data-live>${parts[name]}</div>`
  return layout(
    {
      ...{ title: 'Now', current: '/', viewer },
      live: { topic: 'now', version },
      assets: { styles: ['uplot.css'], scripts: ['uplot.js', 'now.js'] },
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
<section>${history}</section>`,
  )
}
