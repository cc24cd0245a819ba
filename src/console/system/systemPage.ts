import type { LedgerFacts } from '../../ledger/operator/readLedgerFacts.ts'
import type { RecentRequestCounts } from '../../ledger/requestCounts.ts'
import type { BudgetUse } from '../../ledger/snapshot.ts'
import type { StatusReport } from '../../operations/diagnose.ts'
import { countProblems } from '../../operations/problemMessages.ts'
import { noInstanceClause } from '../../operations/renderStatus.ts'
import { servicePerformanceMessage } from '../../operations/serviceLevelTargets.ts'
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
  const { service, database, postgresVersion, name, sinceMs, table: outbox } = ledger
  const noneYet = 'none until a daemon has run'
  const installation = descriptionListHtml([
    ['Name', report.installation || null],
    ['Service', service === null ? noneYet : untrustedTextHtml(service, 200)],
    ['Database', html`${untrustedTextHtml(database, 100)}, PostgreSQL ${postgresVersion}`],
    ['Ledger', html`<code>${name}</code>, since ${instantHtml(sinceMs)}`],
    ['Outbox', outbox === null ? noneYet : html`<code>${outbox}</code>`],
    ['Console', `outboxd ${version}`],
  ])
  return html`<div class="side-by-side">
${liveSection('installation', 'Installation', installation)}
${liveSection('daemons', 'Daemons', daemonsHtml(report))}
${liveSection('budget', 'Budget', budgetHtml(budget))}
${liveSection('targets', 'The service, against its targets', targetsHtml(report.recent))}
</div>
${liveSection('problems', 'Problems', problemsHtml(report))}
${liveSection('settings', 'Settings that the ledger keeps', settingsHtml(ledger))}`
}

const liveSection = (id: string, title: string, content: HtmlValue) => liveHtml(id, section(id, title, content))

function settingsHtml({ settings, settingsSinceMs, settingsBy }: LedgerFacts): HtmlValue {
  if (settings === null) return nothingToShow('None until the first daemon runs.')
  const rows = Object.entries(settings)
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => [html`<code>${name}</code>`, untrustedTextHtml(value, 200)] as const)
  const since =
    settingsSinceMs === null
      ? ''
      : html`<p class="quiet">Set ${instantHtml(settingsSinceMs)} by ${untrustedTextHtml(settingsBy ?? '', 100)}. All daemons and commands act on them.</p>`
  return [since, html`<div class="columns">${descriptionListHtml(rows)}</div>`]
}

export function budgetHtml(budget: BudgetUse): HtmlPart {
  const { limit, windowMs, free, nextFreeMs } = budget
  if (limit === 0) return nothingToShow('There is no budget yet. The first daemon that starts sets it.')
  const next =
    nextFreeMs === null
      ? ''
      : `, the next ${nextFreeMs < 1_000 ? 'within a second' : `in ${formatDuration(nextFreeMs)}`}`
  return html`<p><strong class="number">${free}</strong> of <span class="number">${limit}</span> requests free${next}</p>
<p class="quiet">The last ${formatDuration(windowMs)}: ${budget.submissions} submissions, ${budget.polls} polls, ${budget.tokens} for tokens, ${budget.questions} trials and questions, ${budget.ofOtherClients} of other clients. Under way: ${budget.underWay}.</p>`
}

const problemsShown = 20

const nextTryHtml = (atMs: number, nowMs: number): HtmlValue => (atMs <= nowMs ? 'now' : relativeTimeHtml(atMs, nowMs))

function problemsHtml({ standing, problems, nowMs }: StatusReport): HtmlValue {
  const more = countProblems(standing, problems) - problemsShown
  const rows = standing
    .slice(0, problemsShown)
    .map(({ kind, subject, detail, sinceMs, retryMs }) => [
      kind,
      untrustedTextHtml(subject, 40),
      untrustedTextHtml(detail, 400),
      relativeTimeHtml(sinceMs, nowMs),
      retryMs === null ? '' : nextTryHtml(retryMs, nowMs),
    ])
  if (rows.length === 0) return nothingToShow('No problem is open.')
  return html`${table('Problems', ['Kind', 'Subject', 'Detail', 'Since', 'Next try'], rows)}
${more > 0 ? html`<p>And ${more} more: <code>outboxd status --json</code> lists them.</p>` : ''}`
}

export const targetsHtml = ({ lastHour, lastDay, last28Days }: RecentRequestCounts): HtmlPart =>
  descriptionListHtml([
    ['Last hour', servicePerformanceMessage(lastHour)],
    ['Last day', servicePerformanceMessage(lastDay)],
    ['Last 28 days', servicePerformanceMessage(last28Days)],
  ])

function daemonsHtml(report: StatusReport): HtmlPart {
  const { instances, nowMs } = report
  if (instances.length === 0) return nothingToShow(`${capitalize(noInstanceClause(report))}.`)
  const rows = instances.map(({ id, host, version, startedMs }) => [
    html`<code>${id.slice(0, 8)}</code>`,
    untrustedTextHtml(host, 40),
    version,
    relativeTimeHtml(startedMs, nowMs),
  ])
  return table('Running daemons', ['Id', 'Host', 'Version', 'Started'], rows)
}
