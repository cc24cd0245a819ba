import { expect, test } from 'vitest'
import { submissionCsv } from '../../src/commands/terminal/submissionTable.ts'
import type { ListedSubmission } from '../../src/ledger/operator/selectSubmissions.ts'
import { parseAnswersFile } from '../../src/operations/answersFile.ts'

const id = '0199e3a1-7c2f-7000-8000-1d2f3a4b5c6d'

const linesOf = (text: string) => {
  const read = parseAnswersFile(text)
  return read.kind === 'value' ? read.lines : read.problems
}

const header = 'outbox_id,submission_id,arrived_as,attempts'

test('columns are found by name in any order, and lines without an answer are counted', () => {
  expect(parseAnswersFile('State,Attempts,Arrived_as,Outbox_ID\nuncertain,2,tx-1,1\nuncertain,1,,2\n')).toEqual({
    kind: 'value',
    lines: [{ line: 2, outboxId: '1', submissionId: null, arrivedAs: 'tx-1', attempts: 2, listedAs: null }],
    unanswered: 1,
  })
})

test.each([';', '\t'])('a file with %j between cells, CRLF line ends and a byte order mark is read', (separator) => {
  const text = `\ufeff${header}\r\n4711,,tx-1,1\r\n\r\noutbox:4712,,Not Arrived,2\r\n`
  expect(linesOf(text.replaceAll(',', separator))).toMatchObject([
    { line: 2, outboxId: '4711', arrivedAs: 'tx-1' },
    { line: 4, outboxId: '4712', arrivedAs: null },
  ])
})

test('a file that `list --csv` wrote is read back unchanged, even with formulas, quotes and line breaks in cells', () => {
  const outboxId = '=HYPERLINK("x"),1'
  const submission = { id, outboxId, key: '+1', error: '"a",\nb', state: 'uncertain', attempts: 2 }
  const times = { recordedMs: 0, capturedMs: 0, sentMs: 0, acceptedMs: null, endedMs: 0, sinceMs: 0 }
  const csv = submissionCsv([{ ...submission, ...times, type: 'data' } as ListedSubmission])
  expect(parseAnswersFile(csv)).toEqual({ kind: 'value', lines: [], unanswered: 1 })
  const filled = csv.replace(',,uncertain', ',tx-1,uncertain')
  expect(linesOf(filled)).toEqual([
    { line: 2, outboxId, submissionId: id, arrivedAs: 'tx-1', attempts: 2, listedAs: null },
  ])
})

test('a value in transaction_id is not an answer: only arrived_as is', () => {
  const text = `${header},transaction_id\n1,,,1,tx-1\n2,,tx-2,1,tx-3\n`
  expect(parseAnswersFile(text)).toMatchObject({ lines: [{ arrivedAs: 'tx-2', listedAs: 'tx-3' }], unanswered: 1 })
})

test.each([
  'yes',
  'No',
  'arrived',
  'ok',
  'completed',
])('the word %s in arrived_as is refused because it is not a transaction id', (word) => {
  expect(linesOf(`${header}\n1,,${word},1\n`)).toEqual([
    expect.stringContaining(`line 2: ${word} is not a transaction id`),
  ])
})

test('every wrong line is reported with its number', () => {
  const lines = [
    '1,,tx-1,1',
    '2,,unknown,1',
    ',,tx-2,1',
    '3,,a b,1',
    '4,,tx-3,1,x',
    ',12,tx-1,1',
    `,${id},tx-1,`,
    ',,,',
  ]
  expect(linesOf(`${header}\n${lines.join('\n')}\n`)).toEqual([
    expect.stringMatching(/^line 3: unknown is not a transaction id.* leave the cell empty if that is not known$/),
    'line 4: the line names no record',
    expect.stringMatching(/^line 5: a transaction id has no blanks/),
    'line 6: the line has 5 columns, the header has 4',
    'line 7: 12 is not a submission id',
    'line 8: attempts "" is not a number',
  ])
})

test.each([
  ['', 'the file is empty'],
  ['4711,tx-1\n', 'line 1: the header has no column outbox_id: give a file that `outboxd list --csv` made'],
  ['outbox_id,arrived_as\n', 'line 1: the header has no column attempts: give a file that `outboxd list --csv` made'],
  ['submission_id,state\n', 'line 1: the header has no column arrived_as: give a file that `outboxd list --csv` made'],
  [`${header},attempts\n`, 'line 1: two columns are named attempts: keep one'],
  ['1,"tx\n', expect.stringContaining('this is not a CSV file: Quote Not Closed')],
  [`${header}\n${'1,,tx,1\n'.repeat(10_001)}`, 'the file has 10001 lines: give at most 10000'],
])('a file that cannot be used is refused with the reason: %#', (text, problem) => {
  expect(parseAnswersFile(text)).toEqual({ kind: 'invalid', problems: [problem] })
})
