import type { RecentRequestCounts } from '../../ledger/requestCounts.ts'
import type { BudgetUse } from '../../ledger/snapshot.ts'
import type { StatusReport } from '../../operations/diagnose.ts'
import { countProblems } from '../../operations/problemMessages.ts'
import { noInstanceClause } from '../../operations/renderStatus.ts'
import {
  formatPercent,
  type ServicePerformance,
  serviceLevelTargets,
  servicePerformanceOf,
  sumRequestCounts,
} from '../../operations/serviceLevelTargets.ts'
import { capitalize } from '../../plainText.ts'
import { formatDuration } from '../../time.ts'
import { version } from '../../version.ts'
import {
  descriptionListHtml,
  instantHtml,
  liveHtml,
  nothingToShow,
  relativeTimeHtml,
  section,
  table,
  untrustedTextHtml,
} from '../html/elements.ts'
import { type HtmlPart, type HtmlValue, html } from '../html/html.ts'
import type { OverviewData } from '../overview/readOverview.ts'

/** Which installation this is, and what runs in it. */
export function renderSystem({ report, budget, ledger }: OverviewData): HtmlPart {
  const { settings, settingsSinceMs, settingsBy } = ledger
  const since =
    settingsSinceMs === null
      ? ''
      : html`<p class="quiet">Set ${instantHtml(settingsSinceMs)} by ${untrustedTextHtml(settingsBy ?? '', 100)}. All daemons and commands act on them.</p>`
  const settingRows = Object.entries(settings ?? {})
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => [html`<code>${name}</code>`, untrustedTextHtml(value, 200)] as const)
  return html`<div class="side-by-side">
${liveHtml(
  'installation',
  section(
    'installation',
    'Installation',
    descriptionListHtml([
      ['Name', report.installation || null],
      ['Service', ledger.service === null ? 'none until a daemon has run' : untrustedTextHtml(ledger.service, 200)],
      ['Database', html`${untrustedTextHtml(ledger.database, 100)}, PostgreSQL ${ledger.postgresVersion}`],
      ['Ledger', html`<code>${ledger.name}</code>, since ${instantHtml(ledger.sinceMs)}`],
      ['Outbox', ledger.table === null ? 'none until a daemon has run' : html`<code>${ledger.table}</code>`],
      ['Console', `outboxd ${version}`],
    ]),
  ),
)}
${liveHtml('daemons', instancesSection(report))}
${liveHtml('budget', section('budget', 'Budget', budgetHtml(budget)))}
${liveHtml('targets', serviceTargetsSection(report.recent))}
</div>
${liveHtml('problems', problemsSection(report))}
${liveHtml('settings', section('settings', 'Settings that the ledger keeps', settings === null ? nothingToShow('None until the first daemon runs.') : [since, html`<div class="columns">${descriptionListHtml(settingRows)}</div>`]))}`
}

export function budgetHtml(budget: BudgetUse): HtmlPart {
  const { limit, windowMs, free, nextFreeMs } = budget
  if (limit === 0) return html`${nothingToShow('There is no budget yet. The first daemon that starts sets it.')}`
  const next =
    nextFreeMs === null
      ? ''
      : `, the next ${nextFreeMs < 1_000 ? 'within a second' : `in ${formatDuration(nextFreeMs)}`}`
  return html`<p><strong class="number">${free}</strong> of <span class="number">${limit}</span> requests free${next}</p>
<p class="quiet">The last ${formatDuration(windowMs)}: ${budget.submissions} submissions, ${budget.polls} polls, ${budget.tokens} for tokens, ${budget.questions} trials and questions, ${budget.ofOtherClients} of other clients. Under way: ${budget.underWay}.</p>`
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
  if (rows.length === 0) return section('problems', 'Problems', nothingToShow('No problem is open.'))
  return section(
    'problems',
    'Problems',
    html`${table('Problems', ['Kind', 'Subject', 'Detail', 'Since', 'Next try'], rows)}
${more > 0 ? html`<p>And ${more} more: <code>outboxd status --json</code> lists them.</p>` : ''}`,
  )
}

export function serviceTargetsSection(recent: RecentRequestCounts): HtmlPart {
  const times = [
    ['hour', recent.lastHour],
    ['day', recent.lastDay],
    ['28\u00a0days', recent.last28Days],
  ] as const
  const rows = times.map(([name, counts]) => rowOf(name, servicePerformanceOf(sumRequestCounts(counts))))
  const columns = ['Requests', 'Succeeded', `In ${serviceLevelTargets.answerSeconds} s`]
  const figures = columns.map((words) => ({ words, kind: 'number' }) as const)
  return section('targets', 'The service, against its targets', table('The service', ['Last', ...figures], rows))
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
  if (instances.length === 0)
    return section('daemons', 'Daemons', nothingToShow(`${capitalize(noInstanceClause(report))}.`))
  return section(
    'daemons',
    'Daemons',
    table(
      'Running daemons',
      ['Id', 'Host', 'Version', 'Started'],
      instances.map(({ id, host, version, startedMs }) => [
        html`<code>${id.slice(0, 8)}</code>`,
        untrustedTextHtml(host, 40),
        version,
        relativeTimeHtml(startedMs, nowMs),
      ]),
    ),
  )
}
