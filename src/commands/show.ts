import type { Command } from 'commander'
import type { CommandContext } from '../cli/context.ts'
import { exit, usageError } from '../cli/exitCodes.ts'
import { type Explanation, explainSubmission } from '../cli/explainSubmission.ts'
import { printJson } from '../cli/printJson.ts'
import { findAll, findNamed, type NamedSubmissions, readReferences, referenceHelp } from '../cli/references.ts'
import { submissionJson } from '../cli/submissionJson.ts'
import { submissionTable } from '../cli/submissionTable.ts'
import { escapeControl, terminalOf } from '../cli/table.ts'
import { isoTime, isoTimeOrNull, showMoment, showTime } from '../cli/time.ts'
import { withOperatorStore } from '../cli/withOperatorStore.ts'
import type { LoggedEvent, SubmissionDetail } from '../ledger/operator/readSubmissionDetail.ts'
import type { PrunedSubmission } from '../ledger/retention/readPruned.ts'
import type { OperatorStore } from '../store/operatorStore.ts'

export interface ShowOptions {
  json?: boolean
}

export function describeShow(command: Command): Command {
  return command
    .description('show one submission: what happened, why it is where it is, what happens next, and what it sends')
    .argument('<id>', referenceHelp)
    .option('--json', 'as JSON; payload, body and result as the text that is stored')
    .addHelpText(
      'after',
      `
Prints the record's data, digit for digit as it is stored: mind who looks over your shoulder. A text that is no id, no
idempotency key and has no prefix is taken for a transaction's id. Where several records fit, it lists them.

Examples:
  outboxd show outbox:4711
  outboxd show 0199e3a1-7c2f-7000-8000-1d2f3a4b5c6d
  outboxd show 3a4b5c6d                         by its last digits
  outboxd show transaction:7f0c9f2e             what the service calls it
  outboxd show key:C4711                        lists the records of a key, newest first
  outboxd show outbox:4711 --json | jq -r .body`,
    )
}

/** Prints all that is known of a submission. @returns 3 where there is none of that name */
export async function show(context: CommandContext, name: string, options: ShowOptions): Promise<number> {
  return withOperatorStore(context, async (store) => {
    const several = await findSeveral(store, name)
    if (several !== null) return printSeveral(context, name, several, options)
    const found = await findAll(store, [name])
    if (found.kind === 'invalid') return usageError(context, found.problems)
    const id = found.kind === 'found' ? found.submissions[0]?.id : undefined
    const detail = id === undefined ? null : await store.readSubmissionDetail(id)
    if (detail === null) {
      context.stderr.write(`outboxd: ${await explainMissing(store, name)}\n`)
      return exit.nothing
    }
    const explanation = explainSubmission(detail)
    const row = detail.conflict === null ? null : await readRow(store, detail.outboxId)
    if (options.json) printJson(context, { ...jsonOf(detail, explanation), row })
    else context.stdout.write(describe(detail, explanation, row))
    return exit.done
  })
}

const severalMax = 50

/** What a name fits beside the first, where it is none that more digits would tell apart. */
async function findSeveral(store: OperatorStore, name: string): Promise<NamedSubmissions | null> {
  const named = await findNamed(store, name, severalMax + 1)
  if (named === null || named.by === 'range' || named.by === 'ending') return null
  return named.submissions.length > 1 ? named : null
}

function printSeveral(
  context: CommandContext,
  name: string,
  { by, submissions }: NamedSubmissions,
  { json }: ShowOptions,
): number {
  const shown = submissions.slice(0, severalMax)
  if (json) printJson(context, shown.map(submissionJson))
  else context.stdout.write(submissionTable(shown, terminalOf(context.stdout)))
  const more = submissions.length > severalMax ? `, the newest ${severalMax} of them are listed` : ''
  const all = by === 'key' && more !== '' ? '; outboxd list --key shows all' : ''
  context.stderr.write(`Several records fit ${escapeControl(name)}${more}: outboxd show ID shows one${all}.\n`)
  return exit.done
}

/** A row that has not been captured yet is not missing: it waits in the outbox. */
async function explainMissing(store: OperatorStore, name: string): Promise<string> {
  const [reference] = readReferences(name)
  if (reference?.kind !== 'outbox')
    return `there is no submission ${name}; where it was pruned (RETENTION_DAYS), outboxd show outbox:N still says how it ended`
  const { outboxId } = reference
  const pruned = await store.readPruned(outboxId)
  if (pruned !== null) return prunedMessage(outboxId, pruned)
  const record = await store.outbox.readRecord(outboxId).catch(() => null)
  if (record === null) return `there is no submission ${name}, and no row ${outboxId} in the outbox`
  if (await store.outbox.liesBefore(outboxId).catch(() => false))
    return `the row ${outboxId} lies before the start position of this outbox, so it is never sent: outboxd status names the position, outboxd adopt --start id:N or since:D an earlier one`
  const since = record.createdAt === null ? '' : ` since ${record.createdAt}`
  return `the row ${outboxId} waits in the outbox${since} and has not been captured: outboxd status shows what is in front of it, outboxd map --outbox ${outboxId} the request that it would become`
}

function prunedMessage(outboxId: string, { id, state, endedMs, prunedMs, transactionId }: PrunedSubmission): string {
  const as = transactionId === null ? '' : ` as transaction ${transactionId}`
  return `the record of the row ${outboxId} was ${state} on ${showTime(endedMs)}${as} and pruned on ${showTime(prunedMs)} (RETENTION_DAYS); it was submission ${id}, and is not sent again`
}

/** The row that has the id now, where it is another than the one that was taken. */
async function readRow(store: OperatorStore, outboxId: string): Promise<OtherRow | null> {
  const record = await store.outbox.readRecord(outboxId).catch(() => null)
  return record && { type: record.type, key: record.key, createdAt: record.createdAt }
}

interface OtherRow {
  type: string
  key: string | null
  createdAt: string | null
}

function conflictLines(
  { conflict, type, key, recordedMs, outboxId }: SubmissionDetail,
  row: OtherRow | null,
): string[] {
  if (conflict === null) return []
  const facts = (of: { type: string; key: string | null }, recorded: string) =>
    `recorded ${recorded}, type ${of.type}, ${of.key === null ? 'no key' : `key ${of.key}`}`
  return [
    '',
    `conflict: this is not the record of the outbox row ${outboxId} as it is now: ${conflict}`,
    `  this record     ${facts({ type, key }, isoTime(recordedMs))}`,
    `  the row now     ${row === null ? 'it is gone, or cannot be read' : facts(row, row.createdAt ?? 'at a time it does not say')}`,
    '  if ids began anew: outboxd adopt --new; else the ERP gives the row an id that was never used, or takes it out',
  ]
}

function describe(detail: SubmissionDetail, { why, next }: Explanation, row: OtherRow | null): string {
  const lines = [
    `${detail.state}: ${why}`,
    ...`next: ${next}`.split('\n'),
    ...conflictLines(detail, row),
    '',
    ...facts(detail).map(([name, value]) => `${name.padEnd(17)}${value}`),
    '',
    'events',
    ...detail.events.flatMap(eventLines),
    '',
    'payload, as the ERP wrote it',
    `  ${detail.payload ?? '(none: it could not be read)'}`,
    detail.attempt > 0 ? 'body, as it is sent' : 'body, as it would be sent',
    `  ${detail.body ?? '(none: the record did not map)'}`,
    ...(detail.result === null ? [] : ['result, as the service gave it', `  ${detail.result}`]),
  ]
  return lines.map((line) => `${escapeControl(line)}\n`).join('')
}

function facts(detail: SubmissionDetail): [string, string][] {
  const { nowMs } = detail
  const moment = (ms: number | null) => (ms === null ? null : showMoment(ms, nowMs))
  const all: [string, string | null][] = [
    ['submission', detail.id],
    ['outbox row', detail.outboxId],
    ['type', detail.type],
    ['key', detail.key],
    ['since', moment(detail.sinceMs)],
    ['recorded', moment(detail.recordedMs)],
    ['captured', moment(detail.capturedMs)],
    ['attempts', String(detail.attempt)],
    ['last sent', moment(detail.sentMs)],
    ['transaction', detail.transactionId && `${detail.transactionId}${detail.idByPerson ? ' (a person said so)' : ''}`],
    ['may have arrived', detail.mayHaveArrived ? 'yes: the service may have it, whatever it answered last' : null],
    ['accepted', moment(detail.acceptedMs)],
    ['polls', String(detail.polls)],
    ['ended', moment(detail.endedMs)],
    ['error code', detail.code],
    ['error', detail.error],
    ['idempotency key', detail.idempotencyKey],
    ['outbox row says', detail.reportDue ? `not yet this state: ${detail.reportTrouble ?? 'the report is due'}` : null],
    ['told again', moment(detail.reportAgainMs)],
  ]
  return all.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))
}

function eventLines({ atMs, from, to, attempt, cause, who, detail }: LoggedEvent): string[] {
  const step = from === null || from === to ? to : `${from} -> ${to}`
  const head = `  ${showTime(atMs)}  ${step.padEnd(22)} ${cause}  (${who}, attempt ${attempt})`
  return detail === null ? [head] : [head, ...detailLines(detail, cause)]
}

/** What the event keeps beside its cause; a body or payload of before is there for whoever must know what was sent when. */
function detailLines(detail: Record<string, unknown>, cause: string): string[] {
  // By its claim an owner finds what was put in doubt behind its back; it tells a person nothing.
  const { former, claim: _, ...rest } = detail as { former?: Record<string, unknown>; claim?: unknown }
  const named: [string, unknown][] = [
    ...Object.entries(rest),
    ...Object.entries(former ?? {}).map(([name, value]): [string, unknown] => [`former ${name}`, value]),
  ]
  return named
    .filter(([, value]) => typeof value === 'string' && !cause.includes(value))
    .map(([name, value]) => `      ${name}: ${value}`)
}

const timeFields = [
  'sinceMs',
  'recordedMs',
  'capturedMs',
  'endedMs',
  'dueMs',
  'sentMs',
  'acceptedMs',
  'pollMs',
  'unknownSinceMs',
] as const

/** Times as ISO 8601, under their names without the unit. */
function jsonOf(
  { events, pauses, nowMs: _, permitsFree: __, ...detail }: SubmissionDetail,
  { why, next }: Explanation,
) {
  const times = Object.fromEntries(timeFields.map((name) => [name.slice(0, -2), isoTimeOrNull(detail[name])]))
  const rest = Object.fromEntries(Object.entries(detail).filter(([name]) => !name.endsWith('Ms')))
  return {
    ...rest,
    ...times,
    why,
    next,
    pauses: pauses.map(({ sinceMs, untilMs, ...pause }) => ({
      ...pause,
      since: isoTime(sinceMs),
      until: isoTimeOrNull(untilMs),
    })),
    events: events.map(({ atMs, ...event }) => ({ at: isoTime(atMs), ...event })),
  }
}
