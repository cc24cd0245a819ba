import { CsvError, parse } from 'csv-parse/sync'
import { pluralize } from '../plainText.ts'
import { unmarkFormulas } from './spreadsheet.ts'

export interface AnsweredLine {
  line: number
  outboxId: string | null
  submissionId: string | null
  /** Null if it did not arrive. */
  arrivedAs: string | null
  /** Transactions in further columns: those of the list, or a contradiction. */
  besides: string[]
  /** Attempts when the file was made; null if the file does not say. */
  attempts: number | null
}

export type AnswersRead =
  | { kind: 'value'; lines: AnsweredLine[] /** Lines without an answer. */; unanswered: number }
  | { kind: 'invalid'; problems: string[] }

const linesMax = 10_000

/**
 * Reads a filled-in file of `submissionCsv`, or two columns without a header, separated by commas, semicolons or tabs.
 */
export function readAnswersFile(text: string): AnswersRead {
  const rows = readRows(text)
  if (typeof rows === 'string') return { kind: 'invalid', problems: [rows] }
  const [first, ...others] = rows
  if (first === undefined) return { kind: 'invalid', problems: ['the file is empty'] }
  const columns = readHeader(first.cells)
  if (typeof columns === 'string') return { kind: 'invalid', problems: [`line ${first.line}: ${columns}`] }
  const records = columns === null ? rows : others
  if (records.length > linesMax)
    return { kind: 'invalid', problems: [`${records.length} lines are too many: ${linesMax} at once`] }
  const read = records.map((row) => readLine(row, columns, first.cells.length))
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
      .map(({ info, record }) => ({ line: info.lines, cells: record.map(unmarkFormulas) }))
      .filter(({ cells }) => cells.some((cell) => cell !== ''))
  } catch (error) {
    if (error instanceof CsvError) return `that is no CSV file: ${error.message}`
    throw error
  }
}

function separatorOf(text: string): string {
  const [head = ''] = text.split('\n', 1)
  return /[,;\t]/.exec(head.replace(/"[^"]*"/g, ''))?.[0] ?? ','
}

/** The places of each value in a row, the likeliest first. */
type Columns = Record<keyof typeof names, number[]>

const names = {
  outboxId: ['outbox_id', 'outbox', 'outbox_row'],
  submissionId: ['submission_id', 'submission', 'id'],
  answer: ['arrived_as', 'transaction_id', 'transaction', 'order_id'],
  attempts: ['attempts'],
}

/** Returns null if the row is not a header; the problem if it cannot be used. */
function readHeader(cells: readonly string[]): Columns | null | string {
  const heads = cells.map((cell) => cell.toLowerCase().replace(/[ -]/g, '_'))
  const at = (known: readonly string[]) => known.map((name) => heads.indexOf(name)).filter((place) => place >= 0)
  const columns: Columns = {
    outboxId: at(names.outboxId),
    submissionId: at(names.submissionId),
    answer: at(names.answer),
    attempts: at(names.attempts),
  }
  const isHeader = columns.outboxId.length > 0 || columns.submissionId.length > 0
  const hasAnswer = columns.answer.length > 0
  if (!isHeader) return hasAnswer ? 'the header has no column outbox_id or submission_id' : null
  if (!hasAnswer) return 'the header has no column arrived_as or transaction_id'
  const known = Object.values(names).flat()
  const twice = heads.find((head, i) => known.includes(head) && heads.indexOf(head) < i)
  return twice === undefined ? columns : `two columns are called ${twice}: keep one`
}

const twoColumns: Columns = { outboxId: [0], submissionId: [], answer: [1], attempts: [] }

/** Returns null if the line has no answer; the problem if it is wrong. */
function readLine({ line, cells }: Row, columns: Columns | null, width: number): AnsweredLine | null | string {
  const wrong = (problem: string) => `line ${line}: ${problem}`
  const count = pluralize(cells.length, 'column')
  if (columns === null && cells.length !== 2)
    return wrong(`${count}; without a header there are two, an id and an answer`)
  const { outboxId, submissionId, answer: answers, attempts: counts } = columns ?? twoColumns
  const answer = cells[answers[0] ?? -1] || null
  if (answer === null) return null
  if (columns !== null && cells.slice(width).some((cell) => cell !== ''))
    return wrong(`${count}; the header has ${width}`)
  const [first = null, ...others] = valuesOf(cells, outboxId, (cell) => outboxIdIn(cell) ?? '')
  if (others.length > 0) return wrong(`it says two things: outbox ${[first, ...others].join(' and ')}`)
  const ids =
    columns === null ? readId(cells[0] ?? '') : { outboxId: first, submissionId: cells[submissionId[0] ?? -1] || null }
  if (!ids.outboxId && !ids.submissionId) return wrong('it names no record')
  if (ids.submissionId && !isUuid(ids.submissionId)) return wrong(`${ids.submissionId} is no submission's id`)
  const attemptsText = cells[counts[0] ?? -1] || null
  if (attemptsText !== null && !/^\d{1,9}$/.test(attemptsText)) return wrong(`attempts ${attemptsText} is no number`)
  const attempts = attemptsText === null ? null : Number(attemptsText)
  const [said = answer, ...besides] = valuesOf(cells, answers, (cell) => (isNotArrived(cell) ? notArrived : cell))
  const problem = said === notArrived ? null : transactionIdProblem(said)
  if (problem !== null) return wrong(`${problem}; or ${notArrived}, or nothing where nobody knows`)
  return { line, ...ids, arrivedAs: said === notArrived ? null : said, besides, attempts }
}

const notArrived = 'not-arrived'
const isNotArrived = (cell: string) => /^not[ _-]?arrived$/i.test(cell)

/** The different values of some cells, without empty ones. */
function valuesOf(cells: readonly string[], at: readonly number[], read: (cell: string) => string): string[] {
  const values = at.map((place) => read(cells[place] ?? '')).filter((value) => value !== '')
  return [...new Set(values)]
}

/** A text in the form of a submission's id is one. Write outbox:ID if ids of the outbox look so. */
function readId(text: string): Pick<AnsweredLine, 'outboxId' | 'submissionId'> {
  return isUuid(text) ? { outboxId: null, submissionId: text } : { outboxId: outboxIdIn(text), submissionId: null }
}

const outboxIdIn = (text: string) => text.replace(/^outbox:/, '') || null

const isUuid = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

const transactionIdMaxChars = 255

/** Placeholders of scripts and spreadsheets, and answers to other questions. */
const noIds: ReadonlySet<string> = new Set([
  'null',
  'undefined',
  'none',
  'nil',
  'nan',
  'n/a',
  'na',
  'unknown',
  'true',
  'false',
  ...[
    'yes',
    'no',
    'y',
    'n',
    'ja',
    'nein',
    'ok',
    'okay',
    'x',
    'done',
    'arrived',
    'not-arrived',
    'not_arrived',
    'notarrived',
  ],
  ...['received', 'found', 'missing', 'lost', 'accepted', 'completed', 'failed', 'rejected', 'pending', 'uncertain'],
])

/** Why a text cannot be a transaction's id; null if it can. */
export function transactionIdProblem(id: string): string | null {
  if (id.length > transactionIdMaxChars || /[\s\p{Cc}]/u.test(id) || !id.isWellFormed())
    return `a transaction's id has no blanks and at most ${transactionIdMaxChars} characters`
  if (noIds.has(id.toLowerCase()) || !/[\p{L}\p{N}]/u.test(id))
    return `${id} is no transaction's id: give the one that the service gave`
  return null
}
