import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { CatalogColumn, CatalogTable } from '../../src/describe/catalogTable.ts'
import { proposeOutboxFile } from '../../src/describe/proposeOutboxFile.ts'
import { parseOutboxFile } from '../../src/outbox/readOutboxFile.ts'
import { findFillInPlaces, withComment } from '../../src/yaml/yamlLines.ts'

const names = [
  ...['id', 'ID', 'type', 'key', 'payload', 'data', 'created_at', 'status', 'sync_status', 'processed', 'synced_at'],
  ...['transaction_id', 'error', 'sync_error', 'error_code', 'abandoned_at', 'updated_at', 'customer no', 'deleted_at'],
  ...['yes', 'null', '007', 'a: b', '# x', '"quoted"', 'ümlaut', 'a\nb', '{x}', 'o’clock', '-', '*', 'true'],
]
const types = ['bigint', 'integer', 'text', 'character varying', 'jsonb', 'uuid', 'bytea', 'boolean', 'numeric', 'date']
const times = ['timestamp with time zone', 'timestamp without time zone', 'double precision', 'point', 'money']

const word = fc.constantFrom('new', 'OPEN', 'busy', 'sent', 'draft', 'yes', "it's", '1', '', 'a\nb', '# FILL IN: x')
const column = fc.record({
  name: fc.constantFrom(...names),
  type: fc.constantFrom(...types, ...times),
  notNull: fc.boolean(),
  default: fc.constantFrom(null, "'new'::text", 'now()', 'CURRENT_TIMESTAMP', "'it''s'::text"),
  allowed: fc.option(fc.uniqueArray(word, { maxLength: 6 })),
  isUnique: fc.boolean(),
  isReadable: fc.boolean(),
  refersTo: fc.constantFrom(null, 'public.other', '"a\nb"."#"'),
  sample: fc.option(
    fc.record({ rows: fc.nat(99), filled: fc.nat(99), different: fc.nat(20), objects: fc.constantFrom(0, 1) }),
  ),
})
const tables: fc.Arbitrary<CatalogTable> = fc.record({
  schema: fc.constantFrom('public', 'Erp 1', 'no'),
  name: fc.constantFrom(...names),
  sql: fc.constant('public.t'),
  schemaSql: fc.constant('public'),
  kind: fc.constantFrom('r', 'p'),
  hasHeirs: fc.boolean(),
  primaryKey: fc.subarray(['id', 'key', 'status'] as string[]),
  columns: fc
    .uniqueArray(column, { minLength: 1, maxLength: 12, selector: ({ name }) => name })
    .map((all) =>
      all.map((each): CatalogColumn => ({ ...each, sql: each.name, exactType: each.type, isDeterministic: true })),
    ),
})
const sources = fc.record({
  type: fc.constantFrom(null, 'sale', 'a: b'),
  currencies: fc.subarray(['cur', 'a\nb']),
})

/** Puts a value in each place, as a user would. */
function fillIn(text: string, id: string): string {
  const values: Record<string, string> = {
    'id:': `id: ${JSON.stringify(id)}`,
    'id_unique:': 'id_unique: promised',
    'type:': 'type: { constant: sale }',
    'payload:': 'payload: { columns: all }',
    'filter:': 'filter: "true"',
    'state:': 'state: none',
    'created_at:': '',
    'start:': 'start: now',
  }
  const lines = text.split('\n')
  for (const { line } of findFillInPlaces(text)) {
    const old = lines[line - 1] ?? ''
    lines[line - 1] = values[old.split(' ')[0] ?? ''] ?? ''
  }
  return lines.join('\n')
}

test('the proposed file of any table loads once its places are filled in, not before, and uses its columns', () => {
  fc.assert(
    fc.property(tables, sources, (table, source) => {
      const text = proposeOutboxFile(table, source)
      const asItIs = parseOutboxFile('outbox.yaml', text)
      const places = findFillInPlaces(text)
      expect(asItIs.problems.map(({ line, message }) => [line, message])).toEqual(
        places.map(({ line, what }) => [line, `FILL IN is still there: ${what}`]),
      )
      const [{ name: first = '' } = {}] = table.columns
      const { table: loaded, problems } = parseOutboxFile('outbox.yaml', fillIn(text, first))
      expect(problems).toEqual([])
      expect(loaded).toMatchObject({ schema: table.schema, table: table.name, filter: 'true', state: null })
      expect(table.columns.map(({ name }) => name)).toContain(loaded?.id)
    }),
    { numRuns: 500 },
  )
})

/** Returns the lines without their comments. */
const linesOf = (text: string) => text.split('\n').map((line) => line.replace(/ +#.*/, ''))

test('what decides about content is never filled in: the filter, the state, a document among the columns', () => {
  fc.assert(
    fc.property(tables, sources, (table, source) => {
      const keys = linesOf(proposeOutboxFile(table, source))
      expect(keys).toContain('filter: FILL_IN')
      expect(keys).toContain('state: FILL_IN')
      expect(keys.filter((text) => /^(key|write|cursor|sequence):/.test(text))).toEqual([])
      expect(keys.includes('payload: FILL_IN')).toBe(source.type === null)
    }),
  )
})

const time = {
  isDeterministic: true,
  ...{ sql: 'x', type: 'timestamp with time zone', exactType: 'timestamptz', notNull: true, default: 'now()' },
  ...{ allowed: null, isUnique: false, isReadable: true, refersTo: null, sample: null },
}
const id = { ...time, name: 'id', type: 'bigint', exactType: 'bigint', isUnique: true, default: null }
const tableOf = (...columns: CatalogColumn[]): CatalogTable => ({
  ...{
    schema: 'public',
    name: 't',
    sql: 'public.t',
    schemaSql: 'public',
    kind: 'r',
    hasHeirs: false,
    primaryKey: ['id'],
  },
  columns: [id, ...columns],
})
const createdAtOf = (...columns: CatalogColumn[]) =>
  linesOf(proposeOutboxFile(tableOf(...columns), { type: 't', currencies: [] })).find((line) =>
    line.startsWith('created_at'),
  )

test('created_at is filled in only if Postgres sets exactly one time at the insert', () => {
  const made = { ...time, name: 'made' }
  const ordered = { ...time, name: 'ordered', default: null }
  expect(createdAtOf(made, ordered)).toBe('created_at: made')
  expect(createdAtOf(made, { ...time, name: 'changed' })).toBe('created_at: FILL_IN')
  expect(createdAtOf(ordered)).toBe('created_at: FILL_IN')
  expect(createdAtOf({ ...made, notNull: false })).toBe('created_at: FILL_IN')
  expect(createdAtOf({ ...made, type: 'timestamp without time zone' })).toBe(
    'created_at: { column: made, timezone: FILL_IN }',
  )
})

test.each([
  [true, 'new: false'],
  [false, 'new: [false, null]'],
])('a flag that is not null (%s) waits at %s', (notNull, form) => {
  const flag = { ...time, name: 'done', type: 'boolean', exactType: 'boolean', notNull, default: null }
  const text = proposeOutboxFile(tableOf(flag), { type: 't', currencies: [] })
  expect(text).toContain(`# state: { flag: COLUMN, ${form}, done: true, set: [queued] }`)
})

test('a comment stays on one line, even with line breaks in a column’s name', () => {
  expect(withComment('id: no', 'not \r\u0085\u2028 grown\nby: it')).toMatch(/^id: no +# not grown by: it$/)
})
