import type { CampaignResult } from './campaign.ts'
import type { Case, Violation } from './checker.ts'
import type { EachStatementResult } from './eachStatement.ts'

const violationsShown = 10

/** Returns the campaign's figures, and each violation with what is known about its record. */
export function printResult(result: CampaignResult): string {
  const problems = result.violations.length === 0 ? [] : result.history.problems.slice(0, violationsShown)
  const standing = problems.map((problem) => `  stands as a problem: ${problem}`)
  return layOut(figures(result), 'the guarantee held', result.violations, standing)
}

const statementCharsMax = 110

/** Returns each statement on the way of a record with the kills at it, the figures, and each violation. */
export function printEachStatement({ options, seconds, statements, history, violations }: EachStatementResult): string {
  const lines = statements.map(({ statement, struck }) => {
    const times = (['before', 'after'] as const).map((when) => (struck.includes(when) ? when : '').padEnd(6))
    return `  ${times.join(' ')} ${statement.slice(0, statementCharsMax)}`
  })
  const kills = statements.reduce((sum, { struck }) => sum + struck.length, 0)
  const covered = statements.filter(({ struck }) => struck.length === 2).length
  const figures: [string, unknown][] = [
    ['seed', options.seed],
    ['mutation', options.mutation ?? 'none'],
    ['seconds', seconds],
    ['daemons', options.daemons],
    ['statements / killed before and after', `${statements.length} / ${covered}`],
    ['kills', kills],
    ['records', history.outbox.length],
    ['completed rows without a mark', history.unmarked],
    ['requests at the service', history.requests],
    ['most requests in a window / limit', `${history.requestsMost} / ${history.requestsAllowed}`],
  ]
  return `${lines.join('\n')}\n\n${layOut(figures, 'the guarantee held', violations)}`
}

/** Lays out a run's figures, the verdict and the violations. @param held the verdict if there are none */
export function layOut(
  figures: [name: string, value: unknown][],
  held: string,
  violations: readonly Violation[],
  standing: readonly string[] = [],
): string {
  const lines = figures.map(([name, value]) => `  ${name.padEnd(36)} ${value}`)
  const shown = violations.slice(0, violationsShown).flatMap(describe)
  const verdict = violations.length === 0 ? held : `THE GUARANTEE WAS BROKEN: ${violations.length} violations`
  return [...lines, '', verdict, ...kinds(violations), ...standing, '', ...shown, ''].join('\n')
}

/** Counts violations of the same kind over all records. */
function kinds(violations: readonly Violation[]): string[] {
  const counts = Map.groupBy(violations, ({ what }) => what.replaceAll(/[0-9a-f-]{36}|\d+(\.\d+)?/g, '…').slice(0, 100))
  return [...counts].map(([what, those]) => `  ${String(those.length).padStart(5)} × ${what}`)
}

function figures({
  options,
  idempotency,
  seconds,
  nemesis: report,
  failedStarts,
  history: evidence,
}: CampaignResult): [string, unknown][] {
  const states = Map.groupBy(evidence.ledger, ({ state }) => state)
  return [
    ['seed', options.seed],
    ['mutation', options.mutation ?? 'none'],
    ['service takes a repeated key', idempotency === 'ignore' ? 'as a new record' : 'as E002'],
    ['seconds', seconds],
    ['daemons', options.daemons],
    ['PostgreSQL', options.postgresDir ?? 'of the registry'],
    ['reached through', options.isPooled ? 'pgbouncer' : 'no pooler'],
    ...report.struck,
    ['recovered by an operator', report.recovered],
    ['starts without a database', failedStarts],
    ['records committed', evidence.outbox.length],
    [
      'sales / their versions',
      `${new Set(evidence.documents.versions.map((each) => each.document)).size} / ${evidence.documents.versions.length}`,
    ],
    ['  pruned / emptied', `${evidence.ledger.filter((row) => row.isPruned).length} / ${evidence.emptied}`],
    ...[...states].map(([state, rows]): [string, unknown] => [`  ${state}`, rows.length]),
    ['discarded / resolved by an operator', `${report.discarded} / ${report.resolved}`],
    ['completed rows without a mark', evidence.unmarked],
    ['requests at the service', evidence.requests],
    ['POSTs / with effect', `${evidence.arrivals.length} / ${evidence.arrivals.filter((a) => a.effectId).length}`],
    ['most requests in a window / limit', `${evidence.requestsMost} / ${evidence.requestsAllowed}`],
  ]
}

function describe({ what, case: violated, beside, document = [] }: Violation): string[] {
  return [`- ${what}`, ...document, ...[violated, beside].flatMap((each) => (each ? describeCase(each) : []))]
}

function describeCase({ row, submissions, events, arrivals }: Case): string[] {
  const time = (us: number) => new Date(us / 1000).toISOString().slice(11)
  return [
    `    outbox ${row.outboxId} (${row.marker}) ${row.status} ${row.transactionId ?? ''} key ${row.key}`,
    ...submissions.map((s) => `    submission ${s.id} ${s.state} attempt ${s.attempt} ${s.transactionId ?? ''}`),
    ...events.map(
      (e) => `    ${time(e.atUs)} ${e.from} -> ${e.to} attempt ${e.attempt}, ${e.who}: ${e.message ?? e.cause}`,
    ),
    ...arrivals.map(
      (a) =>
        `    ${time(a.arrivedUs)} at the service: ${a.status ?? 'dropped'} ${a.effectId ?? 'no effect'} key ${a.idempotencyKey}`,
    ),
  ]
}
