import { globSync, readFileSync } from 'node:fs'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { testContext } from '../support/context.ts'
import { daemonEnvironment } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { statusSays } from '../support/statusSays.ts'
import { install } from './installation.ts'

/** What an ERP's database may have: names of ours, publications, another pg-boss, an open transaction next door. */

const data = readFileSync('mappings/data.yaml', 'utf8')
const outboxYaml = `table: sale
id: id
type: { constant: data }
key: r
created_at: made
payload: { columns: all }
filter: state in ('sale', 'done')
state: { status: held, new: new, queued: taken, accepted: taken, completed: sent, failed: bad }
write: { n: transaction_id, given: now }
start: beginning
`

/** Each word that src uses like an alias, so that a statement of ours could mean a column of that name. */
const aliases = [
  ...new Set(
    globSync('src/{outbox,ledger}/**/*.ts').flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/\b([a-z][a-z_]*)\.|\bas "?([a-z][a-z_]*)\b/g)].map(
        ([, qualifier, name]) => qualifier ?? name ?? '',
      ),
    ),
  ),
].filter(
  (name) => !['id', 'held', 'made', 'state', 'n', 'given', 'r', 'xmin', 'xmax', 'cmin', 'cmax', 'ctid'].includes(name),
)

test('a table with a column for each of our aliases is read, marked and written back, also by a filter without qualifiers', async () => {
  const given = await install({ 'data.yaml': data, 'outbox.yaml': outboxYaml })
  expect(aliases).toEqual(expect.arrayContaining(['o', 'built', 's']))
  const late = ['o', 'built']
  const columns = aliases
    .filter((name) => !late.includes(name))
    .map((name) => `${pg.escapeIdentifier(name)} text default 'theirs'`)
  await given.pool.query(`create table sale (id bigint generated always as identity primary key, made timestamptz default now(),
    state text default 'sale', held text default 'new', r text default 'key', n text, given timestamptz,
    "customerId" text default 'C1', "orderDate" timestamptz default '2026-11-20T10:00:00+01:00', amount numeric(12,2) default 1.50,
    field2 text default 'x', ${columns.join(', ')})`)
  await given.pool.query(`insert into sale (state) values ('sale'), ('draft')`)
  await given.startInstance()
  const rows = async () =>
    (await given.pool.query('select state, held, n is not null as named from sale order by id')).rows
  const sent = { state: 'sale', held: 'sent', named: true }
  const draft = { state: 'draft', held: 'new', named: false }
  await eventually(async () => expect(await rows()).toEqual([sent, draft]))

  // A release of the ERP adds columns while records are under way.
  await given.pool.query(
    `insert into sale (state) values ('sale'); alter table sale add o text default 'theirs', add built text default 'theirs'`,
  )
  await given.pool.query(`insert into sale (state) values ('done')`)
  await eventually(async () => expect(await rows()).toEqual([sent, draft, sent, { ...sent, state: 'done' }]))
  const payloads = await given.pool.query<{ s: string; o: string }>(
    `select payload::json ->> 's' as s, payload::json ->> 'o' as o from outboxd.submission order by seq desc limit 1`,
  )
  expect(payloads.rows).toEqual([{ s: 'theirs', o: 'theirs' }])
  const env = daemonEnvironment(given.url, given.serviceUrl, { MAPPINGS_DIR: given.mappingsDir })
  expect(await statusSays(env)).toContain('All is well')
  const checked = testContext(env)
  await check.action(checked, {})
  expect(checked.printed()).toMatch(/^ok {7}outbox: /m)
})

test('beside a publication of all tables, another pg-boss and an open transaction in another database, records are sent', async () => {
  const given = await install({ 'data.yaml': data })
  const other = await createDatabase('template0')
  onTestFinished(() => other[Symbol.asyncDispose]())
  const open = new pg.Client(other.url)
  await open.connect()
  onTestFinished(() => open.end())
  await open.query('begin; create table theirs (id int); select pg_current_xact_id()')
  await given.pool.query(`create publication everything for all tables;
    create schema pgboss; create table pgboss.version (version int primary key); insert into pgboss.version values (10);
    create table pgboss.job (id uuid primary key, state text)`)
  await given.startInstance()
  await given.pool.query(
    `insert into outbox (type, key, payload) select 'data', 'k' || n % 3,
       '{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "x"}' from generate_series(1, 20) n`,
  )
  await eventually(async () =>
    expect((await given.pool.query('select distinct status from outbox')).rows).toEqual([{ status: 'completed' }]),
  )
  expect((await given.pool.query('select version from pgboss.version')).rows).toEqual([{ version: 10 }])
  expect(await statusSays(daemonEnvironment(given.url, given.serviceUrl))).toContain('All is well')
})

test('each table of the ledger has a primary key, and its ids and keys are sorted by bytes', async () => {
  await using database = await createDatabase()
  const { rows: tables } = await database.pool.query(
    `select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('outboxd', 'outboxd_jobs') and c.relkind in ('r', 'p')
       and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`,
  )
  expect(tables).toEqual([])
  const { rows: columns } = await database.pool.query(
    `select c.relname || '.' || a.attname as name from pg_attribute a join pg_class c on c.oid = a.attrelid
       join pg_namespace n on n.oid = c.relnamespace join pg_collation l on l.oid = a.attcollation
     where n.nspname = 'outboxd' and c.relkind = 'r' and l.collname <> 'C'
       and exists (select from pg_index i where i.indrelid = c.oid and a.attnum = any(i.indkey))
       and a.attname not in ('state', 'kind', 'reason', 'resource', 'met', 'name', 'purpose')`,
  )
  expect(columns).toEqual([])
})
