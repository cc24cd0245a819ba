import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { countSomeWaitingRowsByType } from '../../src/outbox/backlog.ts'
import { findOutboxTableProblems } from '../../src/outbox/findOutboxTableProblems.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { standardOutboxTable } from '../../src/outbox/outboxTable.ts'
import { tryWriteBack } from '../../src/outbox/tryWriteBack.ts'
import { createPool } from '../../src/postgres/database.ts'
import { anyRows, openClaim, rests, type Setup, setup, tableOf } from './setup.ts'

/** Problems of a table are found before a daemon runs, as the daemon's own user and without any row. */

const ours = standardOutboxTable('outbox')

/** A pool of a role without rights, whose name has to be quoted. */
async function asClerk({ url, pool }: Setup): Promise<{ clerk: pg.Pool; role: string }> {
  const name = new URL(url).pathname.slice(1)
  const role = `Clerk ${name.slice(5)}`
  const quoted = pg.escapeIdentifier(role)
  await pool.query(`create role ${quoted}`)
  // A setting of the database would also apply to the tests' own sessions.
  const clerk = createPool({
    url,
    name: 'clerk',
    connections: 3,
    onIdleError: () => {},
  })
  clerk.on('connect', (client) => void client.query(`set role ${quoted}`))
  onTestFinished(async () => {
    await clerk.end()
    await pool.query(`drop owned by ${quoted}; drop role ${quoted}`)
  })
  return { clerk, role: quoted }
}

/** Runs the grants of the messages as the owner. @returns the statements */
async function pasteGrants(pool: pg.Pool, problems: readonly string[]): Promise<string[]> {
  const grants = problems.flatMap((problem) => problem.split('\n').filter((line) => line.endsWith(';')))
  for (const grant of grants) await pool.query(grant)
  return grants
}

test('if the role lacks rights, each missing grant is printed, and suffices', async () => {
  const given = await setup()
  await given.pool.query(`create schema "Sales Dept"; create table "Sales Dept"."Out""box" (
      "Id" bigint generated always as identity primary key, "Kind" text not null, body jsonb not null, secret text,
      "State" text not null default 'new', "tx id" text);
    insert into "Sales Dept"."Out""box" ("Kind", body) values ('data', '{}')`)
  const { clerk, role } = await asClerk(given)
  const table = tableOf(`schema: Sales Dept\ntable: 'Out"box'\nid: Id\ntype: Kind\npayload: body
state: { status: State, new: new, queued: queued, completed: completed }\nwrite: { tx id: transaction_id }`)
  const first = await findOutboxTableProblems(clerk, table)
  expect(first).toEqual([expect.stringContaining('the database role lacks permissions. The owner grants them with:')])
  expect(await pasteGrants(given.pool, first)).toEqual([
    `grant usage on schema "Sales Dept" to ${role};`,
    `grant select on "Sales Dept"."Out""box" to ${role};`,
    `grant update ("State", "tx id") on "Sales Dept"."Out""box" to ${role};`,
  ])
  expect(await findOutboxTableProblems(clerk, table)).toEqual([])
  const outbox = new Outbox(clerk, table, 1_000, given.pool)
  expect(await tryWriteBack(outbox)).toMatchObject({ kind: 'tried', refusals: [] })
  expect(await countSomeWaitingRowsByType(outbox)).toEqual([{ type: 'data', waiting: 1 }])
})

test('if only columns are granted, the grant of the whole table is printed, which reading locks needs', async () => {
  const given = await setup()
  const { clerk, role } = await asClerk(given)
  await given.pool.query(`grant select (id, type, key, payload, created_at, status, transaction_id, error_code, error, updated_at) on outbox to ${role};
    grant update (status, transaction_id, error_code, error) on outbox to ${role}`)
  const problems = await findOutboxTableProblems(clerk, ours)
  expect(problems).toEqual([
    expect.stringMatching(/grant select on public\.outbox to .*;\ngrant update \(.*updated_at\) on public\.outbox to/),
  ])
  expect(await pasteGrants(given.pool, problems)).toHaveLength(2)
  expect(await findOutboxTableProblems(clerk, ours)).toEqual([])
})

test('a sequence needs a grant, and a table that is only read needs no right to write', async () => {
  const given = await setup({
    ddl: 'create table source (id bigint generated always as identity primary key, payload jsonb)',
  })
  const { clerk, role } = await asClerk(given)
  const table = tableOf('table: source\nid: id\nsequence: id\ntype: { constant: data }\npayload: payload\nstate: none')
  await given.pool.query(`grant select on source to ${role}`)
  const problems = await findOutboxTableProblems(clerk, table)
  expect(await pasteGrants(given.pool, problems)).toEqual([`grant select on sequence source_id_seq to ${role};`])
  await given.pool.query(`grant usage on schema outboxd to ${role};
    grant select, insert, update on all tables in schema outboxd to ${role}; insert into source (payload) values ('{}')`)
  expect(await findOutboxTableProblems(clerk, table)).toEqual([])
  await using claimed = await openClaim(new Outbox(clerk, table, 1_000, given.pool), anyRows)
  expect(claimed.outboxIds).toEqual(['1'])
  expect(await claimed.readAsManyAsFit()).toMatchObject([{ outboxId: '1', payload: '{}' }])
  expect(await claimed.markReturningUnwrittenIds([])).toEqual([])
})

test('if the role may not use the schema of the search path, the grant is printed', async () => {
  const given = await setup()
  const { clerk, role } = await asClerk(given)
  await given.pool.query('revoke usage on schema public from public')
  expect(await findOutboxTableProblems(clerk, ours)).toEqual([
    expect.stringContaining(`grant usage on schema public to ${role};`),
  ])
})

const columns = 'id bigint primary key, payload jsonb'
const yaml = (state: string, more = '') =>
  `table: source\nid: id\ntype: { constant: data }\npayload: payload\nstate: ${state}\n${more}`
const status = '{ status: status, new: new, queued: queued, completed: completed }'

test.each([
  [
    'a state that is cut short',
    'status varchar(5)',
    status,
    '',
    /"status" of type character varying\(5\), which cannot take what outboxd writes: it would store 'completed' as 'compl'/,
  ],
  [
    'a flag with a value that the column writes differently',
    'done boolean not null default false',
    '{ flag: done, done: yes, set: [completed] }',
    '',
    /"done" of type boolean, which cannot take what outboxd writes: it would store 'yes' as 'true'$/,
  ],
  [
    'an enum without our values',
    'status mood',
    status,
    '',
    /cannot take what outboxd writes: SQLSTATE 22P02: .*"queued"/,
  ],
  ['a number for a state', 'status int', status, '', /"status" of type integer, which cannot take .*"queued"/],
  ['a domain that refuses it', 'status short', status, '', /cannot take what outboxd writes: SQLSTATE 23514/],
  [
    'a boolean for a time',
    'sent boolean not null default false',
    '{ timestamp: sent, set: [completed] }',
    '',
    /no row would ever wait/,
  ],
  [
    'a nullable boolean for a time',
    'sent boolean',
    '{ timestamp: sent, set: [completed] }',
    '',
    /"sent" of type boolean, which cannot take what outboxd writes/,
  ],
  [
    'text for a time',
    'sent text',
    '{ timestamp: sent, set: [completed] }',
    '',
    /"sent" of type text, which cannot take what outboxd writes/,
  ],
  [
    'a number that is too small for a time',
    'sent numeric(5)',
    '{ timestamp: sent, set: [completed] }',
    '',
    /cannot take what outboxd writes: SQLSTATE 22003/,
  ],
  [
    'a flag that never is NULL',
    'sent boolean not null',
    '{ flag: sent, new: null, set: [queued] }',
    '',
    /no row would ever wait/,
  ],
  [
    'text in an integer',
    'status text, note int',
    status,
    'write: { note: error }',
    /"note" of type integer, which cannot take what outboxd writes: .*integer/,
  ],
  [
    'an id in a number',
    'status text, note int',
    status,
    'write: { note: transaction_id }',
    /cannot take what outboxd writes: .*integer: "00000000-/,
  ],
  [
    'an id that is cut short',
    'status text, note varchar(20)',
    status,
    'write: { note: transaction_id }',
    /"note" of type character varying\(20\), which cannot take what outboxd writes: it would store '00000000-0000-4000-8000-000000000000' as '00000000-0000-4000-8'/,
  ],
  [
    'a code that is cut short',
    'status text, note varchar(3)',
    status,
    'write: { note: error_code }',
    /"note" of type character varying\(3\), .*: it would store 'E000' as 'E00'/,
  ],
  [
    'a state for people that is cut short, in a domain over a character',
    'status text, note letters',
    status,
    'write: { note: state }',
    /"note" of type letters, .*: it would store 'accepted' as 'accept'/,
  ],
  [
    'every state in a boolean',
    'status text, note boolean',
    status,
    'write: { note: state }',
    /cannot take what outboxd writes: SQLSTATE 22P02: .*"queued"/,
  ],
  [
    'NULL where it must not be',
    `status text, note text not null default ''`,
    status,
    'write: { note: error }',
    /NOT NULL constraint on "note", but outboxd writes NULL/,
  ],
  [
    'NULL at an end',
    `status text, note text not null default ''`,
    status,
    'write: { note: { what: now, on: [failed] } }',
    /NOT NULL constraint on "note"/,
  ],
])('a column cannot take what is written (%s): `check` says so', async (_, column, state, more, message) => {
  const { pool } = await setup({
    ddl: `create type mood as enum ('new', 'done'); create domain short as text check (length(value) < 8); create domain letters as char(6); create table source (${columns}, ${column})`,
  })
  const problems = await findOutboxTableProblems(pool, tableOf(yaml(state, more)))
  expect(problems.join('\n')).toMatch(message)
  expect(problems[0]).toMatch(/^the table "source" /)
})

test.each([
  ['transaction_id', 'varchar(35)', '"note" of type character varying(35), too narrow for transaction_id'],
  ['error_code', 'char(3)', '"note" of type character(3), too narrow for error_code'],
  ['transaction_id', 'varchar(36)', null],
  ['transaction_id', 'bigint', null],
  ['error', 'varchar(3)', null],
])('a daemon with a %s in a column of type %s: %s', async (what, type, refusal) => {
  const { outbox } = await setup({
    yaml: yaml(status, `write: { note: ${what} }`),
    ddl: `create table source (${columns}, status text, note ${type})`,
  })
  if (refusal === null) await outbox.bindLedger('daemon')
  else await expect(outbox.bindLedger('daemon')).rejects.toThrow(refusal)
})

test('problems that the columns do not show are found by having Postgres plan the statements', async () => {
  const { pool } = await setup({
    ddl: `create table source (${columns}, status int, made text generated always as ('x') stored)`,
  })
  const numbers = '{ status: status, new: new, queued: 1 }'
  expect(await findOutboxTableProblems(pool, tableOf(yaml(numbers)))).toEqual([
    expect.stringMatching(
      /would not let the daemon do its work: SQLSTATE 22P02: .*integer.*\(in the statements .*lock/,
    ),
  ])
  const generated = await findOutboxTableProblems(
    pool,
    tableOf(yaml('{ status: status, new: 0, queued: 1 }', 'write: { made: error }')),
  )
  expect(generated).toEqual([expect.stringMatching(/SQLSTATE 428C9: .*"made".*\(in the statements mark, report\)/)])
  const filter = await findOutboxTableProblems(
    pool,
    tableOf(yaml('{ status: status, new: 0, queued: 1 }', 'filter: region = 5')),
  )
  expect(filter).toEqual([
    expect.stringMatching(/has a filter that Postgres refuses: SQLSTATE 42703: column "region" does not exist$/),
  ])
})

test.each([
  ['closes a bracket that it did not open', 'id = 1) or (true'],

  ['has more than a condition', 'true limit 5'],
])('a filter that %s is refused, because it would change the statements around it', async (_, filter) => {
  const { pool } = await setup({ ddl: `create table source (${columns}, status int)` })
  const table = tableOf(yaml('{ status: status, new: 0, queued: 1 }', `filter: '${filter}'`))
  const problems = await findOutboxTableProblems(pool, table)
  expect(problems).toContainEqual(expect.stringMatching(/has a filter that Postgres refuses: SQLSTATE 42601/))
})

test.each([
  ['our own table', '', ours],
  [
    'a table whose rows are marked at the end',
    `create table source (${columns}, sent timestamptz)`,
    tableOf(yaml('{ timestamp: sent, set: [completed] }')),
  ],
  [
    'a table without marks',
    'create table source (id bigint generated always as identity primary key, payload jsonb)',
    tableOf(yaml('none', 'sequence: id')),
  ],
  [
    'a view',
    `create table base (${columns}, sent timestamptz); create view source as select * from base`,
    tableOf(yaml('{ timestamp: sent, set: [queued] }', 'id_unique: promised')),
  ],
  [
    'json, an enum and a number of milliseconds',
    `create type mood as enum ('new', 'queued', 'completed'); create table source (${columns}, status mood, note json, at bigint)`,
    tableOf(yaml(status, 'write: { note: error, at: now }')),
  ],
])('%s has no problems, and no prepared statement is left', async (_, ddl, table) => {
  const { pool } = await setup({ ddl })
  expect(await findOutboxTableProblems(pool, table)).toEqual([])
  expect((await pool.query('select from pg_prepared_statements')).rowCount).toBe(0)
})

test('a locked table is one problem, reported at once and not for each statement', async () => {
  const { pool, connect } = await setup()
  const form = await connect()
  await form.query('begin; lock table outbox in access exclusive mode')
  expect(await findOutboxTableProblems(pool, ours)).toEqual([
    expect.stringMatching(/"outbox" is locked by another session.*outboxd status/),
  ])
})

test('the trial writes a transaction id that fits a uuid column', async () => {
  const { outbox, pool } = await setup({
    ddl: `create table source (${columns}, status text default 'new', tx uuid)`,
    yaml: yaml(status, 'write: { tx: transaction_id }'),
  })
  await pool.query('insert into source (id) values (1)')
  expect(await tryWriteBack(outbox)).toEqual({ kind: 'tried', outboxId: '1', refusals: [] })
})

test.each([
  'state: { timestamp: sent, set: [completed] }',
  'state: none\nsequence: id',
])('waiting rows are counted by type, without those captured, if the ledger remembers what was captured (%s)', async (more) => {
  const { outbox, pool, capture } = await setup({
    ddl: 'create table source (id bigint generated always as identity primary key, kind text, payload jsonb, sent timestamptz)',
    yaml: `table: source\nid: id\ntype: kind\npayload: payload\n${more}`,
  })
  await pool.query(`insert into source (kind, payload) select 'data', '{}' from generate_series(1, 3)`)
  await capture()
  await rests({ capture, outbox }) // moves the position over them
  await pool.query(`insert into source (kind, payload) values ('dta', '{}'), ('dta', '{}'), (null, '{}')`)
  expect(await countSomeWaitingRowsByType(outbox)).toEqual([
    { type: '', waiting: 1 },
    { type: 'dta', waiting: 2 },
  ])
})

test('a missing right on a column that only the filter reads is found, with the grant', async () => {
  const given = await setup({ ddl: `create table source (${columns}, sent timestamptz, region int)` })
  const { clerk, role } = await asClerk(given)
  await given.pool.query(`grant select (id, payload, sent, xmax), update (sent) on source to ${role}`)
  const table = tableOf(yaml('{ timestamp: sent, set: [queued] }', 'filter: region = 5'))
  const problems = await findOutboxTableProblems(clerk, table)
  expect(await pasteGrants(given.pool, problems)).toEqual([`grant select on public.source to ${role};`])
  expect(await findOutboxTableProblems(clerk, table)).toEqual([])
})
