import {
  type LoggedEvent,
  readSubmissionDetail,
  type SubmissionDetail,
} from '../ledger/operator/readSubmissionDetail.ts'
import type { Databases } from '../operations/databases.ts'
import { type Explanation, explainSubmission } from '../operations/explainSubmission.ts'
import {
  explainMissingRecord,
  explainMissingRecordOfRow,
  type FoundSubmissions,
  findEachSubmissionByReference,
  findSubmissionsByReference,
  type ReferencedSubmissions,
  referenceHelp,
} from '../operations/references.ts'
import {
  type CurrentRow,
  eventDetails,
  eventText,
  missingContentText,
  rowConflictLines,
  type SubmissionDetailValue,
  submissionDetailRows,
  tryReadCurrentRow,
} from '../operations/submissionFacts.ts'
import { escapeControl, terminalOf } from '../plainText.ts'
import { formatInstant, formatInstantAndDistance, replaceEpochMsByIsoTimes } from '../time.ts'
import { defineCommand, type OptionsOf } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'
import { submissionJson, submissionTable } from './terminal/submissionTable.ts'

export const command = defineCommand({
  onlyLooks: true,
  description: 'explain one record: what happened, why, and what comes next',
  arguments: [['<id>', referenceHelp]],
  options: [['--json', 'print JSON, with payload, body and result as stored']],
  help: `Prints the record's data as stored, which may be confidential. If several records match, it lists them. Without a
prefix, it tries ids of records and idempotency keys, then transaction ids, then ids of outbox rows.

Examples:
  outboxd show outbox:4711
  outboxd show 3a4b5c6d                         by the last digits of its id
  outboxd show transaction:7f0c9f2e             by the id that the service gave
  outboxd show key:C4711                        lists the records of a key, newest first
  outboxd show outbox:4711 --json | jq -r .body`,
  async action(context, name, options): Promise<number> {
    return withDatabases(context, async (databases) => {
      const several = await findSeveral(databases, name)
      if (several !== null) return printSeveral(context, name, several, options)
      const found = await findByIdOrRow(context, databases, name)
      if (found.kind === 'invalid') {
        const row = await explainMissingRecordOfRow(databases, name)
        if (row === null) return printUsageErrors(context, found.problems)
        context.stderr.write(`outboxd: ${row}\n`)
        return exitCodes.nothing
      }
      const id = found.kind === 'found' ? found.submissions[0]?.id : undefined
      const detail =
        id === undefined ? null : await readSubmissionDetail(databases.ledger, id, databases.config.keyOnFailure)
      if (detail === null) {
        context.stderr.write(`outboxd: ${await explainMissingRecord(databases, name)}\n`)
        return exitCodes.nothing
      }
      const explanation = explainSubmission(detail)
      const row = detail.conflict === null ? null : await tryReadCurrentRow(databases, detail.outboxId)
      if (options.json) printJson(context, { ...jsonOf(detail, explanation), row })
      else context.stdout.write(describe(detail, explanation, row))
      return exitCodes.done
    })
  },
})

type ShowOptions = OptionsOf<typeof command>

/** Only `show` also accepts an outbox row's id, because `show` changes nothing. */
async function findByIdOrRow(context: CommandContext, databases: Databases, name: string): Promise<FoundSubmissions> {
  const found = await findEachSubmissionByReference(databases.ledger, [name])
  if (found.kind === 'found' || name.trim() === '') return found
  const ofRow = await findEachSubmissionByReference(databases.ledger, [`outbox:${name}`])
  if (ofRow.kind !== 'found') return found
  context.stderr.write(
    `There is no record with the id ${escapeControl(name)}. This is the record of the outbox row ${escapeControl(name)}.\n`,
  )
  return ofRow
}

const severalMax = 50

async function findSeveral(databases: Databases, name: string): Promise<ReferencedSubmissions | null> {
  const named = await findSubmissionsByReference(databases.ledger, name, severalMax + 1)
  if (named === null || named.by === 'range' || named.by === 'ending') return null
  return named.submissions.length > 1 ? named : null
}

function printSeveral(
  context: CommandContext,
  name: string,
  { by, submissions }: ReferencedSubmissions,
  { json }: ShowOptions,
): number {
  const shown = submissions.slice(0, severalMax)
  if (json) printJson(context, shown.map(submissionJson))
  else context.stdout.write(submissionTable(shown, terminalOf(context.stdout)))
  const more = submissions.length > severalMax ? `; these are the newest ${severalMax}` : ''
  const all = by === 'key' && more !== '' ? ', `outboxd audit --key KEY` lists all' : ''
  context.stderr.write(`Several records match ${escapeControl(name)}${more}. \`outboxd show ID\` shows one${all}.\n`)
  return exitCodes.done
}

function describe(detail: SubmissionDetail, { why, adviceText }: Explanation, row: CurrentRow | null): string {
  const lines = [
    `${detail.state}: ${why}`,
    ...`next: ${adviceText}`.split('\n'),
    ...(detail.conflict === null ? [] : ['', ...rowConflictLines(detail, row)]),
    '',
    ...submissionDetailRows(detail).map(([name, fact]) => `${name.padEnd(17)}${factText(fact, detail.nowMs)}`),
    '',
    'events',
    ...detail.events.flatMap(eventLines),
    '',
    'payload, as the ERP wrote it',
    `  ${detail.payload ?? `(${missingContentText(detail, 'it could not be read')})`}`,
    `body, as it ${sentVerb(detail)} sent`,
    `  ${detail.body ?? `(${missingContentText(detail, 'the record did not map')})`}`,
    ...(detail.result === null ? [] : ['result from the service', `  ${detail.result}`]),
  ]
  return lines.map((line) => `${escapeControl(line)}\n`).join('')
}

function sentVerb({ state, attempt }: SubmissionDetail): string {
  if (state === 'queued') return 'will be'
  if (attempt === 0) return 'would be'
  return state === 'sending' ? 'is' : 'was'
}

const factText = (fact: SubmissionDetailValue, nowMs: number) =>
  typeof fact === 'string' ? fact : formatInstantAndDistance(fact.atMs, nowMs)

function eventLines(event: LoggedEvent): string[] {
  const { atMs, from, to, attempt, who } = event
  const step = from === null || from === to ? to : `${from} -> ${to}`
  const head = `  ${formatInstant(atMs)}  ${step.padEnd(22)} ${[eventText(event), `(${who}, attempt ${attempt})`].filter(Boolean).join('  ')}`
  return [head, ...eventDetails(event).map(([name, value]) => `      ${name}: ${value}`)]
}

function jsonOf({ events, pauses, nowMs: _, free: __, ...detail }: SubmissionDetail, { why, adviceText }: Explanation) {
  return {
    ...replaceEpochMsByIsoTimes(detail),
    ...{ why, next: adviceText },
    pauses: pauses.map(replaceEpochMsByIsoTimes),
    events: events.map(replaceEpochMsByIsoTimes),
  }
}
