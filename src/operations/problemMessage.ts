import type { Problem, ProblemKind } from '../model.ts'
import { unknownStatusAdvice } from '../outbox/unknownStatuses.ts'
import { escapeControl, pluralize, truncate } from '../plainText.ts'
import { showTime } from '../time.ts'
import { conflictAdvice } from './submissionFacts.ts'

/** A sentence for the problems of each kind, with the command that helps. */
const message: Record<ProblemKind, (problems: readonly Problem[]) => string> = {
  row_skipped: (rows) =>
    `The daemon has put off ${pluralize(rows.length, 'row')} of the outbox, since capturing or marking fails for ${rows.length === 1 ? 'it' : 'each'} alone (${first(rows)}): outboxd list names each and says why.`,
  row_locked: (rows) =>
    `The daemon cannot capture ${pluralize(rows.length, 'row')} of the outbox (${first(rows)}), since another session has ${rows.length === 1 ? 'it' : 'each'} locked (${rows[0]?.detail}): close its form, or end it with select pg_terminate_backend(PID) in the ERP's database.`,
  unknown_type: (types) =>
    `Rows of ${pluralize(types.length, 'type')} wait for an instance that has a mapping file for it (${types
      .slice(0, subjectsShown)
      .map(({ subject, detail }) => `${subject}: ${detail}`)
      .join(' / ')}): give all instances the same MAPPINGS_DIR, and send SIGHUP to those that lack a file.`,
  source_failing: (types) =>
    `No row of ${types.length === 1 ? 'the type' : 'the types'} ${first(types)} is captured: ${firstDetails(types)}. Other types go on. Fix the query or its rights: \`outboxd check\` prints a missing grant. The daemon tries again every 30 seconds.`,
  report_refused: (rows) =>
    `The outbox table refuses the outcome of ${pluralize(rows.length, 'row')} (${first(rows)}): look at its triggers and constraints; the daemon tries again by itself.`,
  report_locked: (rows) =>
    `The outcome of ${pluralize(rows.length, 'row')} (${first(rows)}) waits for a lock: ${rows[0]?.detail}; the daemon writes it when the session lets go.`,
  mark_ineffective: (rows) =>
    `The outbox table ignores what the daemon writes to ${pluralize(rows.length, 'row')} (${first(rows)}): ${rows[0]?.detail}; outboxd check tries one.`,
  row_missing: (rows) =>
    `The outbox has no longer ${pluralize(rows.length, 'row')} whose outcome is to be written (${first(rows)}). If the ERP deleted ${rows.length === 1 ? 'it' : 'them'}, there is nothing to do. If a partition is detached, attach it: the daemon tries again each hour for a day.`,
  row_conflict: (all) => [rowConflicts(all.filter(({ subject }) => subject !== '')), ...ofTable(all)].join(' ').trim(),
  foreign_outbox: () =>
    'A daemon is configured for another outbox table than the ledger belongs to, and captures nothing: outboxd check says which; outboxd adopt decides.',
  foreign_service: ([problem]) =>
    `A daemon is configured for another service (${problem?.subject}) than the ledger belongs to, and was refused: correct its variables, or say with outboxd adopt --service that the service has moved.`,
  foreign_ledger: ([problem]) =>
    `A daemon of another ledger serves the outbox ${problem?.subject}, or did in the last 5 minutes; daemons of this ledger capture nothing meanwhile. STATE_DATABASE_URL is probably missing or different for one of them. \`outboxd check\` names its session. Rows that it has sent are unknown here: with \`state: none\`, give \`outboxd adopt --same --start id:N\`, with N the first row that it has not sent, before you start a daemon of this ledger.`,
  ledger_behind: () =>
    'Rows of the outbox say that they were taken, the ledger does not know them, and nobody will send them: outboxd recover --dry-run shows them.',
  rows_passed_over: ([found]) =>
    `In the outbox ${found?.detail}. The daemon reads the table from its beginning and takes them; nothing is sent twice, and there is nothing to do.`,
  unknown_status: ([found]) => `In the outbox ${found?.detail}. ${unknownStatusAdvice}`,
  stuck_transaction: (all) => {
    const states = all.map(({ subject }) => subject || 'accepted').join(',')
    return `For too long ${all.map(({ detail }) => detail).join('; ')}: outboxd list --state ${states} shows them, and outboxd show ID what can be done.`
  },
  mass_refusal: (halves) =>
    `The service refuses record after record (${first(halves)}) in the same words, so nothing is sent: see outboxd check; if the refusal is right, outboxd resume --believe-refusals.`,
  loop_failing: (loops) => `A part of the daemon fails again and again: ${firstDetails(loops)}. Its log says more.`,
  claim_lost: () =>
    'The ledger’s database does not answer a COMMIT, and the records of that transaction wait. Look at the way to it (a pooler, the network), then at its disk and its synchronous standbys.',
  settings_differ: (settings) =>
    `Daemons on this ledger differ in their settings (${first(settings)}): give all of them the same, or wait until the last old one has left.`,
  budget_starved: ([problem]) => `The daemons cannot spend the budget: ${problem?.detail}.`,
  clock_off: ([problem]) => `A clock is off: ${problem?.detail}. Compare the clocks of the hosts and of the databases.`,
  change_capture: (tables) =>
    tables.some(({ detail }) => detail?.startsWith('SECURITY'))
      ? `Change capture lets other roles act with the rights of the role that installed it. Install it again, as docs/start/outbox.md says under “Upgrading from 0.2”.`
      : `The trigger did not capture all changes of ${pluralize(tables.length, 'table')} of the ERP (${first(tables)}): in its database, select * from outboxd_capture.trouble says why, and once you have mended that, select * from outboxd_capture.retry() captures what it noted.`,
  files_broken: (all) =>
    `The mapping files or outbox.yaml cannot be used: ${firstDetails(all)}. A daemon that runs goes on with those it has read, and none can start with these. When it is mended: outboxd reload.`,
  credentials_broken: (all) =>
    `A file of a secret or a certificate cannot be used: ${firstDetails(all)}. The daemon goes on with what it has read before. When it is mended: outboxd reload.`,
  prune_behind: ([problem]) =>
    `The ledger is not pruned as it should be: ${problem?.detail}. outboxd prune does it now, and says what keeps it.`,
  ledger_history: ([history]) =>
    history?.subject === 'standby'
      ? `${history.detail}.`
      : `The ledger’s history is another than the daemons had agreed to: ${history?.detail}.`,
  chain_broken: ([found]) =>
    `The logs were changed in the database: ${found?.detail}. outboxd audit --verify checks the whole chain; find out who may write to the schema outboxd, and keep a backup from before.`,
  outbox_history: ([history]) =>
    `${history?.detail}: if you do not want that, outboxd pause, then outboxd adopt --same --start now leaves alone what is not captured yet.`,
}

/** A sentence for each kind of problem, the first seen first. */
export function problemMessage(problems: readonly Problem[]): string[] {
  const kinds = Map.groupBy(problems, ({ kind }) => kind)
  return [...kinds].map(([kind, standing]) => (message[kind] ?? otherwise)(standing))
}

/** A newer daemon may know further kinds. */
const otherwise = (problems: readonly Problem[]) => `${problems[0]?.kind}: ${problems[0]?.detail}`

const subjectsShown = 3

function rowConflicts(rows: readonly Problem[]): string {
  if (rows.length === 0) return ''
  const [verb, object] = rows.length === 1 ? ['differs', 'it'] : ['differ', 'them']
  return `${pluralize(rows.length, 'row')} of the outbox (${first(rows)}) ${verb} from what was taken under this id, so nothing is sent of ${object}: outboxd show outbox:${rows[0]?.subject} shows both. ${conflictAdvice}`
}

/** Problems of the whole table have no subject. */
const ofTable = (all: readonly Problem[]) =>
  all.flatMap(({ subject, detail }) => (subject === '' ? [`In the outbox ${detail}.`] : []))

function first(problems: readonly Problem[]): string {
  const shown = problems.slice(0, subjectsShown).map(({ subject }) => subject)
  return [...shown, ...(problems.length > shown.length ? ['…'] : [])].join(', ')
}

function firstDetails(problems: readonly Problem[]): string {
  const shown = problems
    .slice(0, subjectsShown)
    .map(({ subject, detail }) => `${subject}: ${truncate(detail, detailMax)}`)
  return [...shown, ...(problems.length > shown.length ? ['…'] : [])].join('; ').replace(/\.$/, '')
}

const detailMax = 300

const shownMax = 20

/** Says why rows never became submissions, a line each, the first twenty. */
export function skippedRowMessages(problems: readonly Problem[]): string[] {
  const skipped = problems.filter(({ kind }) => kind === 'row_skipped')
  const lines = skipped.slice(0, shownMax).map(({ subject, detail, retryMs }) => {
    const retry = retryMs === null ? '' : ` (tried again ${showTime(retryMs)})`
    return escapeControl(`outbox:${truncate(subject, 60)} is put off: ${detail}${retry}.`)
  })
  const more = skipped.length - shownMax
  return more > 0 ? [...lines, `And ${pluralize(more, 'row')} more at least: outboxd status --json names them.`] : lines
}
