import { type HtmlSafeString, html } from '@prairielearn/html'
import type { StatusReport } from '../../cli/readStatus.ts'
import { whyNoInstance } from '../../cli/renderStatus.ts'
import { capitalize } from '../../cli/table.ts'
import { foreign } from '../html/foreign.ts'
import { empty } from '../html/notice.ts'
import { table } from '../html/table.ts'
import { age } from '../html/time.ts'

/** The daemons that live. */
export function instancesSection(report: StatusReport): HtmlSafeString {
  const { instances, nowMs } = report
  if (instances.length === 0) return html`<h2>Daemons</h2>${empty(`${capitalize(whyNoInstance(report))}.`)}`
  return html`<h2>Daemons</h2>
${table(
  'daemons that live',
  [{ words: 'id' }, { words: 'host' }, { words: 'version' }, { words: 'started' }],
  instances.map(({ id, host, version, startedMs }) => [
    html`<code>${id.slice(0, 8)}</code>`,
    foreign(host, 40),
    version,
    age(startedMs, nowMs),
  ]),
)}`
}
