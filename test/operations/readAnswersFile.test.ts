import { describe, expect, test } from 'vitest'
import { submissionCsv } from '../../src/commands/terminal/submissionTable.ts'
import type { ListedSubmission } from '../../src/ledger/operator/selectSubmissions.ts'
import { readAnswersFile } from '../../src/operations/readAnswersFile.ts'

const id = '0199e3a1-7c2f-7000-8000-1d2f3a4b5c6d'

const linesOf = (text: string) => {
  const read = readAnswersFile(text)
  return read.kind === 'value' ? read.lines : read.problems
}

describe('two columns without a header', () => {
  test('are an outbox id or a submission’s id, and an answer', () => {
    expect(linesOf(`4711,tx-1\noutbox:4712,not-arrived\n${id},tx-2\n`)).toEqual([
      { line: 1, outboxId: '4711', submissionId: null, arrivedAs: 'tx-1', attempts: null, besides: [] },
      { line: 2, outboxId: '4712', submissionId: null, arrivedAs: null, attempts: null, besides: [] },
      { line: 3, outboxId: null, submissionId: id, arrivedAs: 'tx-2', attempts: null, besides: [] },
    ])
  })

  test.each([';', '\t'])('may be separated by %j, end in CRLF and begin with a byte order mark', (separator) => {
    expect(linesOf(`\ufeff4711${separator}tx-1\r\n\r\n4712${separator}Not Arrived\r\n`)).toMatchObject([
      { line: 1, outboxId: '4711', arrivedAs: 'tx-1' },
      { line: 3, outboxId: '4712', arrivedAs: null },
    ])
  })
})

describe('with a header', () => {
  test('columns are found by name, in whatever order; lines without an answer are counted', () => {
    expect(readAnswersFile('State,Arrived as,Outbox ID\nuncertain,tx-1,1\nuncertain,,2\n')).toEqual({
      kind: 'value',
      lines: [{ line: 2, outboxId: '1', submissionId: null, arrivedAs: 'tx-1', attempts: null, besides: [] }],
      unanswered: 1,
    })
  })

  test('what list --csv wrote comes back, whatever it holds', () => {
    const outboxId = '=HYPERLINK("x"),1'
    const submission = { id, outboxId, key: '+1', error: '"a",\nb', state: 'uncertain', attempts: 2 }
    const times = { recordedMs: 0, capturedMs: 0, sentMs: 0, acceptedMs: null, endedMs: 0, sinceMs: 0 }
    const csv = submissionCsv([{ ...submission, ...times, type: 'data' } as ListedSubmission])
    expect(readAnswersFile(csv)).toEqual({ kind: 'value', lines: [], unanswered: 1 })
    const filled = csv.replace(',,uncertain', ',tx-1,uncertain')
    expect(linesOf(filled)).toEqual([
      { line: 2, outboxId, submissionId: id, arrivedAs: 'tx-1', attempts: 2, besides: [] },
    ])
  })

  test('the transaction id that we know is no answer where there is a column for that', () => {
    expect(readAnswersFile('outbox_id,transaction_id,arrived_as\n1,tx-1,\n')).toMatchObject({
      lines: [],
      unanswered: 1,
    })
    expect(linesOf('outbox_id,transaction_id\n1,tx-1\n')).toMatchObject([{ arrivedAs: 'tx-1' }])
  })
})

test('what other columns say beside the answer is told, unless it is the same', () => {
  const text = 'outbox_id,arrived_as,transaction_id,order_id\n1,not-arrived,tx-1,Not Arrived\n2,tx-2,tx-2,tx-3\n'
  expect(linesOf(text)).toMatchObject([
    { arrivedAs: null, besides: ['tx-1'] },
    { arrivedAs: 'tx-2', besides: ['tx-3'] },
  ])
})

describe('what says two things is wrong:', () => {
  test.each([
    ['outbox_id,arrived_as,Arrived as\n9,not-arrived,tx\n', 'line 1: two columns are called arrived_as: keep one'],
    ['attempts,outbox_id,arrived_as,attempts\n1,9,tx,2\n', 'line 1: two columns are called attempts: keep one'],
    ['outbox_id,outbox,arrived_as\n9,8,tx\n', 'line 2: it says two things: outbox 9 and 8'],
    ['outbox_id,arrived_as\n9,not-arrived,tx\n', 'line 2: 3 columns; the header has 2'],
  ])('%j', (text, problem) => {
    expect(linesOf(text)).toEqual([problem])
  })

  test('empty cells beyond the header, and one thing said twice, are none', () => {
    expect(linesOf('outbox_id,outbox,arrived_as\n9,outbox:9,tx,,\n8,,ty\n')).toMatchObject([
      { outboxId: '9', arrivedAs: 'tx' },
      { outboxId: '8', arrivedAs: 'ty' },
    ])
  })
})

test.each(['yes', 'No', 'arrived', 'ok', 'completed'])('a word for an answer is no transaction’s id: %s', (word) => {
  expect(linesOf(`1,${word}\n`)).toEqual([expect.stringContaining(`line 1: ${word} is no transaction's id`)])
})

test('every wrong line is told by its number', () => {
  expect(linesOf('1,tx-1\n2,unknown\n,tx-2\n3,a b\n4,tx-3,x\n5,"not-arrived"\n')).toEqual([
    expect.stringMatching(/^line 2: unknown is no transaction's id.*; or not-arrived, or nothing where nobody knows$/),
    'line 3: it names no record',
    expect.stringMatching(/^line 4: a transaction's id has no blanks/),
    'line 5: 3 columns; without a header there are two, an id and an answer',
  ])
  expect(linesOf(`submission_id,arrived_as,attempts\n12,tx-1,1\n,,\n${id},tx-1,x\n`)).toEqual([
    "line 2: 12 is no submission's id",
    'line 4: attempts x is no number',
  ])
})

test.each([
  ['', 'the file is empty'],
  ['outbox_id,state\n1,uncertain\n', 'line 1: the header has no column arrived_as or transaction_id'],
  ['arrived_as,state\ntx,uncertain\n', 'line 1: the header has no column outbox_id or submission_id'],
  ['1,"tx\n', expect.stringContaining('that is no CSV file: Quote Not Closed')],
  ['1,tx\n'.repeat(10_001), '10001 lines are too many: 10000 at once'],
])('a file that does not do: %#', (text, problem) => {
  expect(readAnswersFile(text)).toEqual({ kind: 'invalid', problems: [problem] })
})
