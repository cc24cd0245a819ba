import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { outboxJsonSchema } from '../../src/outbox/outboxSchema.ts'
import { standardOutboxTable } from '../../src/outbox/outboxTable.ts'
import { parseOutboxFile } from '../../src/outbox/readOutboxFile.ts'

const examples = readdirSync('mappings/examples').filter((name) => name.endsWith('.yaml'))
const textOf = (name: string) => readFileSync(`mappings/examples/${name}`, 'utf8')

test('outbox.schema.json is current (to update it: npm test -- test/outbox/readOutboxFile -u)', async () => {
  await expect(outboxJsonSchema()).toMatchFileSnapshot('../../mappings/outbox.schema.json')
})

test.each(examples)('the example %s is valid and names its schema', (name) => {
  expect(parseOutboxFile(name, textOf(name)).problems).toEqual([])
  expect(textOf(name).split('\n')[0]).toBe('# yaml-language-server: $schema=../outbox.schema.json')
})

test('partner_view.yaml reads and writes the columns of the standard table', () => {
  const { table } = parseOutboxFile('partner_view.yaml', textOf('partner_view.yaml'))
  const standard = standardOutboxTable('outbox_a')
  expect(table).toEqual({ ...standard, file: 'partner_view.yaml', idPromised: true, order: table?.order })
})

test('every problem is reported at once, with line, column and the nearest known word', () => {
  expect(
    problems(`
tabel: message
id: 7
order: n
sequence: id
type: { constnt: data }
created_at: { column: at, unit: milisconds }
payload: { column: body, encoding: utf8x }
state: { status: s, new: N, queued: N, compleeted: DONE }
write:
  s: state
  tx: transactionid
  at: { what: now, on: [complete] }
`),
  ).toMatchInlineSnapshot(`
    [
      "2:1 "table" is missing: text (quote it if it looks like a number)",
      "2:1 unknown key "tabel"; did you mean "table"?",
      "3:5 "id" must be text (quote it if it looks like a number), and is a number",
      "6:1 "column" is missing: text (quote it if it looks like a number)",
      "6:9 unknown key "constnt"; did you mean "constant"?",
      "7:33 "unit" must be seconds or milliseconds or microseconds, and is "milisconds"; did you mean "milliseconds"?",
      "8:36 "encoding" is unknown: known are utf-8, base64, hex, windows-1252, iso-8859-1, utf-16le",
      "9:40 unknown key "compleeted"; did you mean "completed"?",
      "12:3 "what" must be state or transaction_id or error_code or error or now, and is "transactionid"; did you mean "transaction_id"?",
      "13:25 item 1 must be queued or sending or accepted or completed or failed or rejected or uncertain or discarded, and is "complete"; did you mean "completed"?",
    ]
  `)
})

test.each([
  [
    'state: { flag: f, new: 1, done: 1, set: [queued] }',
    '"done" is "1", the same as "new": the row would be captured again and again',
  ],
  ['state: { timestamp: t }', '"set" is missing'],
  ['state: { timestamp: t, set: [] }', '"set" is empty'],
  ['state: { status: s }', '"new" is missing'],
  ['state: { status: s, new: [] }', '"new" is empty'],
  ['state: [none]', '"state" must be none, or { status: … }, { flag: … } or { timestamp: … }, and is'],
  ['state: { column: s }', '"state" must be none, or { status: … }, { flag: … } or { timestamp: … }'],
  ['', '"state" is missing: none, or { status: … }'],
  ['state: { timestamp: s, set: [completed] }\nsequence: id', '"sequence" is only for "state: none"'],
  ['state: none\norder: o\nsequence: id', '"order" and "sequence" are both given'],
  ['state: none\nwrite: { id: error }', '"id" identifies the row ("id"), and must not be written'],
  ['state: none\ncreated_at: made\nwrite: { made: now }', '"made" is the time that identifies the row ("created_at")'],
  ['state: none\nwrite: { t: state }', '"t" is read as the record\'s type ("type"), and must not be written'],
  ['state: none\nkey: k\nwrite: { k: { what: now, on: [failed] } }', '"k" is read as the record\'s key ("key")'],
  ['state: none\nwrite: { p: error }', '"p" is read as the record\'s payload ("payload")'],
  ['state: none\nsequence: n\nwrite: { n: now }', '"n" orders the rows ("sequence")'],
  [
    'created_at: made\nstate: { timestamp: made, set: [completed] }',
    '"made" is the time that identifies the row ("created_at")',
  ],
  ['state: { flag: id, new: 0, done: 1, set: [queued] }', '"id" identifies the row ("id")'],
  ['state: { flag: f, set: [queued] }\nwrite: { f: state }', '"f" is written by "state" already'],
  ['state: none\ncreated_at: { column: a, timezone: Europe/Berln }', '"timezone" is not a known timezone'],
])('%s: %s', (text, message) => {
  const found = problems(`table: t\nid: id\ntype: t\npayload: p\n${text}`)
  expect(found).toHaveLength(1)
  expect(found[0]).toContain(message)
})

test('a file with one character changed is valid or has problems with line and column, and parsing never throws', () => {
  fc.assert(
    fc.property(
      fc
        .constantFrom(...examples)
        .chain((name) => fc.tuple(fc.constant(textOf(name)), fc.nat(textOf(name).length - 1))),
      fc.string({ minLength: 0, maxLength: 1, unit: 'grapheme' }),
      ([text, at], character) => {
        const changed = text.slice(0, at) + character + text.slice(at + 1)
        const { table, problems } = parseOutboxFile('outbox.yaml', changed)
        expect(table === null).toBe(problems.length > 0)
        for (const { line, column, message } of problems) {
          expect(line).toBeGreaterThan(0)
          expect(line).toBeLessThanOrEqual(changed.split(/\r\n|\r|\n/).length)
          expect(column).toBeGreaterThan(0)
          expect(message).not.toBe('')
        }
      },
    ),
    { numRuns: process.env.LONG ? 10_000 : 500 },
  )
})

function problems(text: string): string[] {
  return parseOutboxFile('outbox.yaml', text).problems.map(
    ({ line, column, message }) => `${line}:${column} ${message}`,
  )
}

test.each([
  'state: { status: t, new: [a, b] }', // read, and never written
  'created_at: made\nstate: { status: t, new: [a, b], queued: c }', // the row is recognised by its time, and its type was read before
  'state: none\norder: o\nwrite: { o: now }',
])('a column that is read may be written if that does not affect captured rows: %s', (text) => {
  expect(problems(`table: t\nid: id\ntype: t\npayload: p\n${text}`)).toEqual([])
})

test('a file with `changes` or `start` only is about the table of `outboxd migrate --outbox`', () => {
  const { table } = parseOutboxFile('outbox.yaml', 'changes: each\nstart: now', 'erp.queue')
  expect(table).toEqual({ ...standardOutboxTable('erp.queue'), changes: 'each', start: 'now' })
  expect(problems('changes: both')).toEqual(['1:10 "changes" must be once or each, and is "both"'])
  expect(parseOutboxFile('outbox.yaml', 'table: t\nid: id\ntype: t\nstate: none\nchanges: each').table?.changes).toBe(
    'each',
  )
})
