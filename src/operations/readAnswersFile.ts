import { CsvError, parse } from 'csv-parse/sync'
import { pluralize } from '../plainText.ts'
import { wholeIdPattern } from './references.ts'
import { unmarkFormulas } from './spreadsheet.ts'

/** At least one of the two ids is set. */
export interface AnsweredLine {
  line: number
  outboxId: string | null
  submissionId: string | null
  arrivedAs: string | null
  listedAs: string | null
  attempts: number
}

export type AnswersRead =
  | { kind: 'value'; lines: AnsweredLine[] /** Lines without an answer. */; unanswered: number }
  | { kind: 'invalid'; problems: string[] }

const linesMax = 10_000

/** Reads a filled-in `submissionCsv`, separated by commas, semicolons or tabs. */
export function readAnswersFile(text: string): AnswersRead {
  const rows = readRows(text)
  if (typeof rows === 'string') return { kind: 'invalid', problems: [rows] }
  const [first, ...records] = rows
  if (first === undefined) return { kind: 'invalid', problems: ['the file is empty'] }
  const heads = first.cells.map((cell) => cell.toLowerCase())
  const wrongHead = headProblem(heads)
  if (wrongHead !== null) return { kind: 'invalid', problems: [`line ${first.line}: ${wrongHead}`] }
  if (records.length > linesMax)
    return { kind: 'invalid', problems: [`it has ${records.length} lines: give at most ${linesMax}`] }
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
      .map(({ info, record }) => ({ line: info.lines, cells: record.map(unmarkFormulas) }))
      .filter(({ cells }) => cells.some((cell) => cell !== ''))
  } catch (error) {
    if (error instanceof CsvError) return `it is not a CSV file: ${error.message}`
    throw error
  }
}

/** The first separator of the first line outside quotes. */
function separatorOf(text: string): string {
  const [head = ''] = text.split('\n', 1)
  return /[,;\t]/.exec(head.replace(/"[^"]*"/g, ''))?.[0] ?? ','
}

type Column = 'outbox_id' | 'submission_id' | 'arrived_as' | 'attempts' | 'transaction_id'

function headProblem(heads: readonly string[]): string | null {
  const has = (name: Column) => heads.includes(name)
  const missing =
    !has('outbox_id') && !has('submission_id') ? 'outbox_id' : has('arrived_as') ? 'attempts' : 'arrived_as'
  if (!has(missing)) return `the header has no column ${missing}: give a file that \`outboxd list --csv\` made`
  const twice = heads.find((head, at) => head !== '' && heads.indexOf(head) < at)
  return twice === undefined ? null : `two columns are named ${twice}: keep one`
}

/** Null without an answer. A text is a problem. */
function readLine({ line, cells }: Row, heads: readonly string[]): AnsweredLine | null | string {
  const cell = (name: Column) => cells[heads.indexOf(name)] || null
  const wrong = (problem: string) => `line ${line}: ${problem}`
  const answer = cell('arrived_as')
  if (answer === null) return null
  if (cells.slice(heads.length).some((each) => each !== ''))
    return wrong(`it has ${pluralize(cells.length, 'column')}, the header has ${heads.length}`)
  const outboxId = cell('outbox_id')?.replace(/^outbox:/, '') || null
  const submissionId = cell('submission_id')
  if (outboxId === null && submissionId === null) return wrong('it names no record')
  if (submissionId !== null && !wholeIdPattern.test(submissionId))
    return wrong(`${submissionId} is not a submission id`)
  const attempts = cell('attempts') ?? ''
  if (!/^\d{1,9}$/.test(attempts)) return wrong(`attempts "${attempts}" is not a number`)
  const arrivedAs = /^not[ _-]?arrived$/i.test(answer) ? null : answer
  const problem = arrivedAs === null ? null : transactionIdProblem(arrivedAs)
  if (problem !== null)
    return wrong(`${problem}. Write not-arrived if it did not arrive; leave the cell empty if that is not known`)
  return {
    ...{ line, outboxId, submissionId, arrivedAs },
    listedAs: cell('transaction_id'),
    attempts: Number(attempts),
  }
}

/** The same as in service/wire.ts. */
const transactionIdMaxChars = 255

/** Placeholders of scripts and spreadsheets, and answers to other questions. */
const noIds: ReadonlySet<string> = new Set(
  [
    'null undefined none nil nan n/a na unknown true false yes no y n ja nein ok okay x done',
    'arrived not-arrived not_arrived notarrived received found missing lost',
    'accepted completed failed rejected pending uncertain',
  ].flatMap((words) => words.split(' ')),
)

export function transactionIdProblem(id: string): string | null {
  if (id.length > transactionIdMaxChars || /[\s\p{Cc}]/u.test(id) || !id.isWellFormed())
    return `a transaction id has no blanks and at most ${transactionIdMaxChars} characters`
  if (noIds.has(id.toLowerCase()) || !/[\p{L}\p{N}]/u.test(id))
    return `${id} is not a transaction id: give the one from the service`
  return null
}
