import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { CatalogColumn, CatalogTable } from '../../../src/outbox/propose/catalogTable.ts'
import { proposeOutboxFile } from '../../../src/outbox/propose/proposeOutboxFile.ts'
import { parseOutboxFile } from '../../../src/outbox/readOutboxFile.ts'
import { findFillInPlaces, writeYamlLines, writeYamlWithPlaceholders } from '../../../src/yaml/yamlLines.ts'

const names = [
  ...[
    'id',
    'ID',
    'type',
    'key',
    'payload',
    'data',
    'created_at',
    'status',
    'sync_status',
    'processed',
    'synced_at',
    'sent',
  ],
  ...['transaction_id', 'error', 'sync_error', 'error_code', 'abandoned_at', 'updated_at', 'customer no', 'deleted_at'],
  ...['yes', 'null', '007', 'a: b', '# x', '"quoted"', 'ümlaut', 'a\nb', '{x}', 'o’clock', '-', '*', 'true'],
]
const types = ['bigint', 'integer', 'text', 'character varying', 'jsonb', 'uuid', 'bytea', 'boolean', 'numeric', 'date']
const times = ['timestamp with time zone', 'timestamp without time zone', 'double precision', 'point', 'money']

const word = fc.constantFrom('new', 'OPEN', 'busy', 'queued', 'sent', 'done', 'draft', 'error', 'yes', "it's", '1', '')
const column = fc.record({
  name: fc.constantFrom(...names),
  type: fc.constantFrom(...types, ...times),
  notNull: fc.boolean(),
  isGenerated: fc.boolean(),
  default: fc.constantFrom(null, "'new'::text", "'queued'::text", 'now()', "'it''s'::text"),
  knownValues: fc.option(fc.uniqueArray(word, { maxLength: 6 })),
  isClosed: fc.boolean(),
  isUnique: fc.boolean(),
  isReadable: fc.boolean(),
})
const tables: fc.Arbitrary<CatalogTable> = fc.record({
  schema: fc.constantFrom('public', 'Erp 1', 'no'),
  name: fc.constantFrom(...names),
  kind: fc.constantFrom('r', 'p'),
  hasHeirs: fc.boolean(),
  primaryKey: fc.subarray(['id', 'key', 'status'] as string[]),
  columns: fc
    .uniqueArray(column, { minLength: 1, maxLength: 12, selector: ({ name }) => name })
    .map((all) => all.map((each): CatalogColumn => ({ ...each, exactType: each.type }))),
})

test('the proposed file of any table loads, at once or after its places are filled in, and uses its columns', () => {
  fc.assert(
    fc.property(tables, (table) => {
      const { lines } = proposeOutboxFile(table)
      const text = writeYamlLines(lines)
      const tried = parseOutboxFile('outbox.yaml', writeYamlWithPlaceholders(lines))
      expect(tried.problems).toEqual([])
      expect(tried.table).toMatchObject({ schema: table.schema, table: table.name })
      expect(table.columns.map(({ name }) => name)).toContain(tried.table?.id)
      const asItIs = parseOutboxFile('outbox.yaml', text)
      expect(asItIs.problems.length > 0).toBe(findFillInPlaces(text).length > 0)
      if (asItIs.table !== null) expect(asItIs.table).toEqual(tried.table)
    }),
    { numRuns: 500 },
  )
})

test('a comment stays on one line, even with line breaks in a column’s name', () => {
  const comment = 'not \r\u0085\u2028 grown\nby: it'
  const text = writeYamlLines([
    { text: 'id: no', comment },
    { text: '', comment },
    { text: 'key:', fillIn: comment },
  ])
  expect(text.match(/^.*$/gm)?.map((line) => line.replace(/ *#/, ' #'))).toEqual([
    'id: no # not grown by: it',
    ' # not grown by: it',
    'key: # FILL IN: not grown by: it',
    '',
  ])
})

test('describe does not propose to write into the id column', () => {
  const time = { name: 'synced_at', type: 'date', exactType: 'date', isUnique: true, isReadable: true }
  const column = { ...time, isGenerated: false, default: null, knownValues: [], isClosed: false }
  const table = {
    schema: 'public',
    name: 't',
    kind: 'r',
    hasHeirs: false,
    primaryKey: [],
  }
  for (const notNull of [true, false]) {
    const { lines } = proposeOutboxFile({ ...table, columns: [{ ...column, notNull }] })
    expect(parseOutboxFile('outbox.yaml', writeYamlWithPlaceholders(lines)).problems).toEqual([])
  }
})
