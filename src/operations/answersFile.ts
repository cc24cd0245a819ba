import { CsvError, parse } from 'csv-parse/sync'
import { assertNoDataLost } from '../ledger/history/history.ts'
import {
  type LoggedEvent,
  readSubmissionDetail,
  type SubmissionDetail,
} from '../ledger/operator/readSubmissionDetail.ts'
import { findSubmissions, type ListedSubmission } from '../ledger/operator/selectSubmissions.ts'
import { readOtherTransactionHolder } from '../ledger/transactions.ts'
import { pluralize, quoteForShell } from '../plainText.ts'
import type { Database } from '../postgres/database.ts'
import type { SkippedRecord } from './bulkChange.ts'
import type { Databases } from './databases.ts'
import { submissionIdPattern } from './references.ts'
import {
  findTransactionIdProblem,
  predictResolveOutcome,
  type RecordToSettle,
  type ResolveAnswer,
  type ResolveOutcome,
  transactionHolderMessage,
  transactionNamedInAnswer,
  whyNotResolved,
} from './resolve.ts'
import { unescapeFormulas } from './spreadsheet.ts'

/** `outboxId` or `submissionId` is set, or both. */
interface AnsweredLine {
  line: number
  outboxId: string | null
  submissionId: string | null
  arrivedAs: string | null
  listedAs: string | null
  attempts: number
}

type ParsedAnswers =
  | { kind: 'value'; lines: AnsweredLine[]; unanswered: number }
  | { kind: 'invalid'; problems: string[] }

const linesMax = 10_000

/** Reads the filled-in CSV of `list --csv`, separated by commas, semicolons or tabs. */
export function parseAnswersFile(text: string): ParsedAnswers {
  const rows = readRows(text)
  if (typeof rows === 'string') return { kind: 'invalid', problems: [rows] }
  const [first, ...records] = rows
  if (first === undefined) return { kind: 'invalid', problems: ['the file is empty'] }
  const heads = first.cells.map((cell) => cell.toLowerCase())
  const wrongHead = headProblem(heads)
  if (wrongHead !== null) return { kind: 'invalid', problems: [`line ${first.line}: ${wrongHead}`] }
  if (records.length > linesMax)
    return { kind: 'invalid', problems: [`the file has ${records.length} lines: give at most ${linesMax}`] }
  const read = records.map((row) => readLine(row, heads))
  const problems = read.flatMap((each) => (typeof each === 'string' ? [each] : []))
  if (problems.length > 0) return { kind: 'invalid', problems }
  const lines = read.filter((each) => each !== null && typeof each !== 'string')
  return { kind: 'value', lines, unanswered: read.length - lines.length }
}

interface Row {
  line: number
  cells: string[]
}

function readRows(text: string): Row[] | string {
  try {
    const rows = parse(text, {
      bom: true,
      delimiter: separatorOf(text),
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
    }) as unknown as { info: { lines: number }; record: string[] }[]
    return rows
      .map(({ info, record }) => ({ line: info.lines, cells: record.map(unescapeFormulas) }))
      .filter(({ cells }) => cells.some((cell) => cell !== ''))
  } catch (error) {
    if (error instanceof CsvError) return `this is not a CSV file: ${error.message}`
    throw error
  }
}

function separatorOf(text: string): string {
  const [head = ''] = text.split('\n', 1)
  return /[,;\t]/.exec(head.replace(/"[^"]*"/g, ''))?.[0] ?? ','
}

type Column = 'outbox_id' | 'submission_id' | 'arrived_as' | 'attempts' | 'transaction_id'

function headProblem(heads: readonly string[]): string | null {
  const has = (name: Column) => heads.includes(name)
  const missingBesideId = has('arrived_as') ? 'attempts' : 'arrived_as'
  const missing = has('outbox_id') || has('submission_id') ? missingBesideId : 'outbox_id'
  if (!has(missing)) return `the header has no column ${missing}: give a file that \`outboxd list --csv\` made`
  const twice = heads.find((head, at) => head !== '' && heads.indexOf(head) < at)
  return twice === undefined ? null : `two columns are named ${twice}: keep one`
}

/** Returns null for a line without an answer, and a text for a wrong line. */
function readLine({ line, cells }: Row, heads: readonly string[]): AnsweredLine | null | string {
  const cell = (name: Column) => cells[heads.indexOf(name)] || null
  const wrong = (problem: string) => `line ${line}: ${problem}`
  const answer = cell('arrived_as')
  if (answer === null) return null
  if (cells.slice(heads.length).some((each) => each !== ''))
    return wrong(`the line has ${pluralize(cells.length, 'column')}, the header has ${heads.length}`)
  const outboxId = cell('outbox_id')?.replace(/^outbox:/, '') || null
  const submissionId = cell('submission_id')
  if (outboxId === null && submissionId === null) return wrong('the line names no record')
  if (submissionId !== null && !submissionIdPattern.test(submissionId))
    return wrong(`${submissionId} is not a submission id`)
  const attempts = cell('attempts') ?? ''
  if (!/^\d{1,9}$/.test(attempts)) return wrong(`attempts "${attempts}" is not a number`)
  const arrivedAs = /^not[ _\p{Dash_Punctuation}]?arrived$/iu.test(answer) ? null : answer
  const problem = arrivedAs === null ? null : findTransactionIdProblem(arrivedAs)
  if (problem !== null)
    return wrong(`${problem}. Write not-arrived if it did not arrive; leave the cell empty if that is not known`)
  return {
    ...{ line, outboxId, submissionId, arrivedAs },
    listedAs: cell('transaction_id'),
    attempts: Number(attempts),
  }
}

export interface LineToSettle {
  line: number
  settling: RecordToSettle
  answer: ResolveAnswer
  /** The result if the service confirms the operator's answer. */
  outcome: ResolveOutcome
}

interface SkippedLine extends SkippedRecord {
  line: number
}

export type MatchedAnswers =
  | { kind: 'value'; settling: LineToSettle[]; skipped: SkippedLine[] }
  | { kind: 'invalid'; problems: string[] }

/** Any wrong line makes the whole file invalid. */
export async function matchAnswersToRecords(
  { ledger }: Pick<Databases, 'ledger'>,
  lines: readonly AnsweredLine[],
  terms: Pick<ResolveAnswer, 'unchecked' | 'newKey'>,
  onLine: (index: number) => void,
): Promise<MatchedAnswers> {
  await assertNoDataLost(ledger)
  const settling: LineToSettle[] = []
  const skipped: SkippedLine[] = []
  const problems: string[] = []
  const lineOf = new Map<string, number>()
  for (const [index, answered] of lines.entries()) {
    onLine(index)
    const { line, arrivedAs } = answered
    const wrong = (problem: string) => void problems.push(`line ${line}: ${problem}`)
    const isFirst = (what: string, name: string) => {
      const before = lineOf.get(what)
      if (before === undefined) lineOf.set(what, line)
      else wrong(`${name} is already on line ${before}`)
      return before === undefined
    }
    const submission = await findSubmission(ledger, answered)
    if (typeof submission === 'string') {
      wrong(submission)
      continue
    }
    const detail = await readSubmissionDetail(ledger, submission.id)
    if (detail === null) {
      wrong('the record was pruned just now')
      continue
    }
    const answer: ResolveAnswer = {
      ...{ arrived: arrivedAs ?? undefined, notArrived: arrivedAs === null, takeBack: false },
      ...{ unchecked: terms.unchecked, newKey: terms.newKey },
    }
    const transaction = transactionNamedInAnswer(detail, answer)
    if (!isFirst(submission.id, `outbox:${submission.outboxId}`)) continue
    if (transaction !== null && !isFirst(`${transaction.resource} ${arrivedAs}`, transaction.transactionId)) continue
    const other = transaction === null ? null : await readOtherTransactionHolder(ledger, transaction, submission.id)
    const why = whyAnswerSkipped(detail, answered) ?? (await whyNotResolved(ledger, detail, answer))
    const contradiction = contradictionOf(detail, answered)
    const settled = { submission, detail }
    if (other !== null) wrong(transactionHolderMessage(other))
    else if (why !== null) skipped.push({ line, submission, reason: why })
    else if (contradiction !== null) wrong(contradiction)
    else settling.push({ line, settling: settled, answer, outcome: predictResolveOutcome(settled, answer) })
  }
  return problems.length > 0 ? { kind: 'invalid', problems } : { kind: 'value', settling, skipped }
}

/** Returns a problem as a text. */
async function findSubmission(
  ledger: Database,
  { outboxId, submissionId }: AnsweredLine,
): Promise<ListedSubmission | string> {
  const [first, second] =
    submissionId !== null
      ? await findSubmissions(ledger, { kind: 'ids', value: [submissionId] }, 2)
      : await findSubmissions(ledger, { kind: 'outbox', value: outboxId ?? '' }, 2)
  if (first === undefined) return `there is no record ${submissionId ?? `outbox:${outboxId}`}`
  if (second !== undefined) return `outbox:${outboxId} may be ${first.id} or ${second.id}: fill in submission_id`
  // Sorting only one column of a spreadsheet gives every record the wrong answer.
  if (outboxId !== null && first.outboxId !== outboxId)
    return `${first.id} is outbox:${first.outboxId}, not outbox:${outboxId}: was only one column sorted, or did a spreadsheet change the id?`
  return first
}

function contradictionOf(detail: SubmissionDetail, { arrivedAs, listedAs }: AnsweredLine): string | null {
  if (listedAs === null || listedAs === detail.transactionId || listedAs === arrivedAs) return null
  const answer = arrivedAs === null ? 'that it did not arrive' : `that it arrived as ${arrivedAs}`
  return `the line contradicts itself about outbox:${detail.outboxId}: arrived_as says ${answer}, transaction_id says ${listedAs}`
}

/** An old line neither undoes a later step of its record nor sends the record again. */
function whyAnswerSkipped(detail: SubmissionDetail, { arrivedAs, attempts, listedAs }: AnsweredLine): string | null {
  const { state, transactionId, attempt, idByPerson, events } = detail
  const name = `outbox:${detail.outboxId}`
  if (arrivedAs !== null && transactionId === arrivedAs && (state === 'accepted' || state === 'completed'))
    return `${name} is already ${state} as ${arrivedAs}`
  if (attempts !== attempt) return `${name} was sent again after the file was made: make a new file`
  const oneByOne = `outboxd resolve ${quoteForShell(name)} ${arrivedAs === null ? '--not-arrived' : `--arrived ${quoteForShell(arrivedAs)}`}`
  if (idByPerson && listedAs !== transactionId)
    return `${name} is ${state}; its transaction id ${transactionId} was given by an operator. If that id is wrong: ${oneByOne}`
  const isWithdrawn = ({ cause, detail: noted }: LoggedEvent) =>
    cause === 'withdrawn' && noted?.former?.transactionId === arrivedAs
  return arrivedAs !== null && events.some(isWithdrawn)
    ? `${name} did not arrive as ${arrivedAs}, an operator has said. If it did after all: ${oneByOne}`
    : null
}
