import { expect, test } from 'vitest'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { setup } from './setup.ts'

const columns = "doc_no text not null, not_before timestamptz, status text, kind text, payload jsonb default '{}'"
const table = (more = '') => `create table source (${columns}${more})`
const yaml = (more: string, state = '{ flag: taken, set: [queued] }') =>
  `table: source\nid: doc_no\ntype: { constant: data }\npayload: payload\nstate: ${state}\n${more}`
const taken = ', taken boolean not null default false'

async function refusal(ddl: string, text: string): Promise<string> {
  const { outbox } = await setup({ ddl, yaml: text })
  return mayHaveWaitingRows(outbox).then(
    () => 'accepted',
    (error: Error) => error.message,
  )
}

test('an id column without a unique index is refused', async () => {
  const { pool, outbox, capture } = await setup({ ddl: table(taken), yaml: yaml('') })
  await pool.query(`insert into source (doc_no) select 'doc ' || n % 10 from generate_series(1, 30) n`)
  await expect(capture()).rejects.toThrow(
    'the table "source" has no unique index on exactly "doc_no", and two rows of one id would count as one',
  )
  await pool.query('delete from source a using source b where a.doc_no = b.doc_no and a.ctid > b.ctid')
  await pool.query('create unique index on source (doc_no)')
  expect(await mayHaveWaitingRows(outbox)).toBe(true) // the table is inspected again after each refusal
  expect(await capture()).toHaveLength(10)
})

test.each([
  ['of only some rows', 'create unique index on source (doc_no) where not taken'],
  ['of more columns', 'create unique index on source (doc_no, kind)'],
  ['of an expression', 'create unique index on source (lower(doc_no))'],
  ['that is not unique', 'create index on source (doc_no)'],
])('an index %s does not make the id unique', async (_, index) => {
  expect(await refusal(`${table(taken)}; ${index}`, yaml(''))).toContain('no unique index on exactly "doc_no"')
})

test.each([
  ['a primary key', `${table(taken)}; alter table source add primary key (doc_no)`],
  ['an index with other columns beside', `${table(taken)}; create unique index on source (doc_no) include (kind)`],
  ['a constraint that is checked at commit', `${table(taken)}; alter table source add unique (doc_no) deferrable`],
  ['a table partitioned by the id', `${table(`${taken}, primary key (doc_no)`)} partition by hash (doc_no)`],
])('%s makes the id unique', async (_, ddl) => {
  expect(await refusal(ddl, yaml(''))).toBe('accepted')
})

test('an id that may be NULL is refused', async () => {
  const ddl = `${table(taken)}; alter table source alter doc_no drop not null; create unique index on source (doc_no)`
  expect(await refusal(ddl, yaml(''))).toContain('allows NULL in "doc_no", by which rows are recognised')
})

test.each([
  [
    'a table partitioned by another column',
    `${table(`${taken}, primary key (doc_no, not_before)`)} partition by range (not_before)`,
  ],
  ['a table with heirs', `${table(`${taken}, primary key (doc_no)`)}; create table heir () inherits (source)`],
  ['a view', `${table(taken)}; alter table source rename to below; create view source as select * from below`],
])('%s needs id_unique: promised, which an ordinary table may not use instead of an index', async (_, ddl) => {
  expect(await refusal(ddl, yaml(''))).toContain('promise that (id_unique: promised)')
  expect(await refusal(ddl, yaml('id_unique: promised'))).toBe('accepted')
  expect(await refusal(table(taken), yaml('id_unique: promised'))).toContain('no unique index')
})

const unique = ', primary key (doc_no)'
const remembered = (filter: string) => yaml(`sequence: n\nfilter: ${filter}`, 'none')
const numbered = table(`, n bigint not null generated always as identity${unique}`)

test.each([
  ['not_before <= now()', 'now'],
  ['not_before <= current_timestamp', 'current_timestamp'],
  ["status = 'x' or random() > 0.5", 'random()'],
  ['exists (select from vip where vip.no = o.doc_no)', 'exists'],
  ["not_before > 'today'", "'today'"],
])('without marks, a filter that can become true without a change of the row is refused: %s', async (filter, name) => {
  const message = await refusal(numbered, remembered(filter))
  expect(message).toContain(`has a filter with ${name}. With "state: none" a row is read once`)
  expect(message).toContain('let outboxd mark rows (set: [queued])')
})

test.each([
  "status = 'released' and kind like 'urn:%'",
  "status in ('a', 'b') and not (kind is null or kind <> 'x')",
  "not_before > '2026-01-01T00:00:00Z'",
  "o.payload ->> 'a' = '1'",
  "status = 'now()'",
  "status = 'x' -- now()",
])('without marks, a filter that compares columns with constants is accepted: %s', async (filter) => {
  expect(await refusal(numbered, remembered(filter))).toBe('accepted')
})

test('with marked rows, a filter may become true with time', async () => {
  const { pool, capture } = await setup({
    ddl: table(`${taken}${unique}`),
    yaml: yaml('filter: not_before <= clock_timestamp()'),
  })
  await pool.query(`insert into source (doc_no, not_before) values ('a', now() + interval '2 s'), ('b', now())`)
  expect(await capture()).toEqual(['b'])
  await expect.poll(() => capture()).toEqual(['a'])
})

test.each([
  ['table: sorce', 'there is no table "sorce"', 'did you mean "source"?'],
  ['table: Source', 'there is no table "Source"', 'did you mean "source"?'],
  ['table: elswhere', 'there is no table "elswhere"', 'did you mean "erp.elsewhere"?'],
  ['schema: public\ntable: elsewhere', 'there is no table "public"."elsewhere"', 'did you mean "erp.elsewhere"?'],
  ['schema: ero\ntable: elsewhere', 'there is no table "ero"."elsewhere"', 'did you mean "erp.elsewhere"?'],
])('for an unknown table, %j, the message suggests the one that is probably meant', async (name, missing, hint) => {
  const ddl = `${table(`${taken}${unique}`)}; create schema erp; create table erp.elsewhere (id bigint)`
  const message = await refusal(ddl, yaml('').replace('table: source', name))
  expect(message).toContain(missing)
  expect(message).toContain(hint)
})

test('no table is suggested if none has a similar name', async () => {
  expect(await refusal(table(unique), yaml('').replace('table: source', 'table: nothing_like_it'))).not.toContain(
    'mean',
  )
})

test('for an unknown column, the message suggests the one that is probably meant', async () => {
  expect(await refusal(table(`${taken}${unique}`), yaml('key: statsu'))).toMatch(
    /has no column "statsu" \(key\); it has doc_no, .*; did you mean "status"\?/,
  )
})
