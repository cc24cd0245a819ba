import {
  type LoggedEvent,
  readSubmissionDetail,
  type SubmissionDetail,
} from '../ledger/operator/readSubmissionDetail.ts'
import type { ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { traceIdOf } from '../observe/traceIds.ts'
import { type Explanation, explainSubmission } from '../operations/explainSubmission.ts'
import { explainMissingRecord, searchHelp, searchRecords } from '../operations/references.ts'
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
import { defineCommand } from './terminal/command.ts'
import { type CommandContext, exitCodes, printJson, printUsageErrors } from './terminal/context.ts'
import { withDatabases } from './terminal/operator.ts'
import { submissionJson, submissionTable } from './terminal/submissionTable.ts'

export const command = defineCommand({
  onlyLooks: true,
  description: 'explain one record: what happened, why, and what comes next',
  arguments: [['<word>', searchHelp]],
  options: [['--json', 'print JSON, with payload, body and result as stored']],
  help: `Prints the record's data as stored, which may be confidential. The word is looked for in all
states. If several records match, it lists them and exits with 3.

Examples:
  outboxd show 4711                             by the id of its outbox row, or its key
  outboxd show 3a4b5c6d                         by the last digits of its id
  outboxd show transaction:7f0c9f2e             by the id that the service gave
  outboxd show key:C4711                        lists the records of a key, newest first
  outboxd show outbox:4711 --json | jq -r .body`,
  async action(context, word, { json = false }): Promise<number> {
    return withDatabases(context, async (databases) => {
      const found = await searchRecords(databases.ledger, word, listedMax + 1)
      if (found === null)
        return printUsageErrors(context, [`${word || 'an empty word'} names no record: give ${searchHelp}`])
      if (found.length > 1) return printSeveral(context, word, found, json)
      const [first] = found
      const detail = first === undefined ? null : await readSubmissionDetail(databases.ledger, first.id)
      if (detail === null) {
        context.stderr.write(`outboxd: ${escapeControl(await explainMissingRecord(databases, word))}\n`)
        return exitCodes.nothing
      }
      const explanation = explainSubmission(detail)
      const row = detail.conflict === null ? null : await tryReadCurrentRow(databases, detail.outboxId)
      const trace = context.env.OTEL_EXPORTER_OTLP_ENDPOINT ? { traceId: traceIdOf(detail.id) } : {}
      if (json) printJson(context, { ...jsonOf(detail, explanation), ...trace, row })
      else context.stdout.write(describe(detail, explanation, { row, ...trace }))
      return exitCodes.done
    })
  },
})

const listedMax = 50

function printSeveral(
  context: CommandContext,
  word: string,
  found: readonly ListedSubmission[],
  json: boolean,
): number {
  const shown = found.slice(0, listedMax)
  if (json) printJson(context, shown.map(submissionJson))
  else context.stdout.write(submissionTable(shown, terminalOf(context.stdout)))
  const more = found.length > listedMax ? `; these are the first ${listedMax}` : ''
  const all = more === '' ? '' : ', `outboxd audit --key KEY` lists all of a key'
  context.stderr.write(`Several records match ${escapeControl(word)}${more}. \`outboxd show ID\` shows one${all}.\n`)
  return exitCodes.nothing
}

function describe(
  detail: SubmissionDetail,
  { why, adviceText }: Explanation,
  { row, traceId }: { row: CurrentRow | null; traceId?: string },
): string {
  const lines = [
    `${detail.state}: ${why}`,
    ...`next: ${adviceText}`.split('\n'),
    ...(detail.conflict === null ? [] : ['', ...rowConflictLines(detail, row)]),
    '',
    ...submissionDetailRows(detail).map(([name, fact]) => `${name.padEnd(17)}${factText(fact, detail.nowMs)}`),
    ...(traceId === undefined ? [] : [`${'trace'.padEnd(17)}${traceId}`]),
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
  return [head, ...eventDetails(event).map(({ name, value }) => `      ${name}: ${value}`)]
}

function jsonOf(
  { events, pauses, nowMs: _, free: __, newer: ___, wasSent: ____, ...detail }: SubmissionDetail,
  { why, adviceText }: Explanation,
) {
  return {
    ...replaceEpochMsByIsoTimes(detail),
    ...{ why, next: adviceText },
    pauses: pauses.map(replaceEpochMsByIsoTimes),
    events: events.map(replaceEpochMsByIsoTimes),
  }
}
