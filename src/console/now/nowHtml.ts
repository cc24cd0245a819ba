import { html } from '@prairielearn/html'
import type { Viewer } from '../guard/viewer.ts'
import { layout } from '../html/layout.ts'
import { notice } from '../html/notice.ts'
import type { NowView } from './readNow.ts'

export function renderNow({ report, version }: NowView, viewer: Viewer): string {
  const sentences = report.diagnoses.map(({ isWell, message }) =>
    notice(isWell ? 'good' : 'bad', html`<p>${message}</p>`),
  )
  return layout(
    { title: 'Now', current: '/', viewer, live: { topic: 'now', version } },
    html`<div id="sentences" data-live>${sentences}</div>`,
  )
}
