import { skippedMax } from '../ledger/capture.ts'
import { conflictsMax } from '../ledger/rowConflicts.ts'
import type { Problem, ProblemKind } from '../model/problem.ts'
import { unknownStatusAdvice } from '../outbox/survey.ts'
import { escapeControl, pluralize, quoteForShell, truncateToOneLine } from '../plainText.ts'
import { formatInstant } from '../time.ts'
import { endSessionAdvice } from './databaseMessages.ts'
import { rowConflictAdvice } from './submissionFacts.ts'

export type ProblemCounts = Readonly<Partial<Record<ProblemKind, number>>>

/** The problems may be fewer than `count`. */
const message: Record<ProblemKind, (problems: readonly Problem[], count: number) => string> = {
  row_skipped: (rows, count) =>
    `The daemon skips ${pluralize(count, 'row')} of the outbox (${first(rows)}), because capturing or marking ${count === 1 ? 'it' : 'them'} fails. \`outboxd list\` says why.${count < skippedMax ? '' : ' Until they are fewer, no other row is captured.'}`,
  row_locked: (rows, count) =>
    `The daemon cannot capture ${pluralize(count, 'row')} of the outbox (${first(rows)}): another session has ${count === 1 ? 'it' : 'them'} locked (${rows[0]?.detail}). ${endSessionAdvice('PID', 'the ERP’s')}`,
  source_failing: (types) =>
    `No row of ${types.length === 1 ? 'the type' : 'the types'} ${first(types)} is captured: ${firstDetails(types)}. Other types go on. Fix what fails: the query, a right (\`outboxd check\` prints a missing grant), or the condition of its documents. The daemon tries again every 30 seconds.`,
  report_refused: (rows, count) =>
    `The outbox table refuses the outcome of ${pluralize(count, 'row')} (${first(rows)}). Look at its triggers and constraints. The daemon tries again by itself.`,
  report_locked: (rows, count) =>
    `The outcome of ${pluralize(count, 'row')} (${first(rows)}) waits for a lock: ${rows[0]?.detail}. The daemon writes it back when that session ends.`,
  mark_ineffective: (rows, count) =>
    `The outbox table ignores what the daemon writes to ${pluralize(count, 'row')} (${first(rows)}): ${rows[0]?.detail}. \`outboxd check\` tries one row.`,
  row_missing: (rows, count) =>
    `${pluralize(count, 'row')} left the outbox before the outcome was written back (${first(rows)}). If the ERP deleted ${count === 1 ? 'it' : 'them'}, do nothing. If a partition is detached, attach it: the daemon tries hourly for up to a day.`,
  row_conflict: rowConflicts,
  rows_passed_over: ([found]) =>
    `In the outbox ${found?.detail}. \`outboxd capture --dry-run\` lists these rows, \`outboxd capture\` sends them.`,
  unknown_status: ([found]) => `In the outbox ${found?.detail}. ${unknownStatusAdvice}`,
  foreign_status: (all) =>
    `The service gives transactions a status that its interface does not have (${firstDetails(all)}). The daemon asks again, at last hourly. Ask the operator of the service what the status means. If it is final, \`outboxd discard ID --reason TEXT\` ends a record.`,
  stuck_transaction: (all) => {
    const states = all.map(({ subject }) => subject || 'accepted').join(',')
    return `For too long ${all.map(({ detail }) => detail).join('; ')}. \`outboxd list --state ${states}\` shows them. \`outboxd show ID\` says what to do.`
  },
  loop_failing: (loops) => `A part of the daemon keeps failing: ${firstDetails(loops)}. Look at the daemon’s log.`,
  claim_lost: () =>
    'The ledger’s database does not answer a COMMIT, so the records of that transaction wait. Check the connection to it (a pooler, the network), then its disk and its synchronous standbys. Do not restart the daemon: only it knows these records.',
  settings_differ: (all) =>
    `A daemon has other settings or files than the ledger, and captures and writes back nothing (${firstDetails(all)}). The ledger’s count until no daemon has had them for a while. During a rolling change, stop the last old daemon, and wait half a minute (a good minute if it was killed). Otherwise correct that daemon’s settings or files, and restart it.`,
  budget_starved: ([problem]) =>
    `The daemons cannot spend the budget, so records wait: ${problem?.detail}. Run the daemons near that database, or make it faster.`,
  clock_off: (all) =>
    `A clock is off: ${firstDetails(all)}. \`outboxd check\` compares the clocks. Correct the wrong one with NTP.`,
  credentials_broken: (all) =>
    `A file with a secret, a certificate or the database’s address cannot be used: ${firstDetails(all)}. The daemon goes on with the previous one. Fix it: the daemon reads it again every ten seconds. If systemd hands in a copy (LoadCredential), restart the daemon.`,
  host_failing: (all) =>
    `A daemon sends nothing, because its host lacks what requests need (${firstDetails(all)}). Other daemons go on. That daemon tries again by itself, at least each minute.`,
  log_failing: (all) =>
    `A daemon cannot write its log, so lines are lost (${firstDetails(all)}). Records go on. Make room on the disk of the log: the daemon tries again each second, and then logs how many lines are missing.`,
  prune_behind: ([problem]) =>
    `Pruning the ledger is late: ${problem?.detail}. \`outboxd prune\` does it now, and says what prevents it.`,
}

/** @param counts of all open problems, of which `problems` may be a part */
export function problemMessages(problems: readonly Problem[], counts: ProblemCounts = {}): string[] {
  const kinds = Map.groupBy(problems, ({ kind }) => kind)
  return [...kinds].map(([kind, standing]) =>
    (message[kind] ?? otherwise)(standing, Math.max(standing.length, counts[kind] ?? 0)),
  )
}

/** @param counts by kind; may be older than `problems` */
export const countProblems = (problems: readonly Problem[], counts: ProblemCounts): number =>
  Math.max(
    problems.length,
    Object.values(counts).reduce((total, count) => total + count, 0),
  )

/** Shows a problem of a kind that only a newer daemon knows. */
const otherwise = (problems: readonly Problem[]) => `${problems[0]?.kind}: ${problems[0]?.detail}`

const subjectsShown = 3

function rowConflicts(rows: readonly Problem[], count: number): string {
  const atLeast = count >= conflictsMax ? 'At least ' : ''
  const [are, their] = count === 1 ? ['is not the row', 'its'] : ['are not the rows', 'their']
  return `${atLeast}${pluralize(count, 'row')} of the outbox (${first(rows)}) ${are} captured under ${their} id, and not sent. \`outboxd show ${quoteForShell(`outbox:${rows[0]?.subject}`)}\` shows both. ${rowConflictAdvice}${atLeast && ' Until then nothing more is captured, unless most of them only wait for their outcome.'}`
}

function first(problems: readonly Problem[]): string {
  const shown = problems.slice(0, subjectsShown).map(({ subject }) => subject)
  return [...shown, ...(problems.length > shown.length ? ['…'] : [])].join(', ')
}

function firstDetails(problems: readonly Problem[]): string {
  const shown = problems
    .slice(0, subjectsShown)
    .map(({ subject, detail }) => `${subject}: ${truncateToOneLine(detail, detailMax)}`)
  return [...shown, ...(problems.length > shown.length ? ['…'] : [])].join('; ').replace(/\.$/, '')
}

const detailMax = 300

const shownMax = 20

export function skippedRowMessages(problems: readonly Problem[]): string[] {
  const skipped = problems.filter(({ kind }) => kind === 'row_skipped')
  const lines = skipped.slice(0, shownMax).map(({ subject, detail, retryMs }) => {
    const retry = retryMs === null ? '' : ` (tried again ${formatInstant(retryMs)})`
    return escapeControl(`outbox:${truncateToOneLine(subject, 60)} is skipped: ${detail}${retry}.`)
  })
  const more = skipped.length - shownMax
  return more > 0 ? [...lines, `And ${more} more: \`outboxd status --json\` lists them.`] : lines
}
