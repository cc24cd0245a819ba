import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { command as describe } from '../../../src/commands/describe.ts'
import { loadOutboxFile } from '../../../src/outbox/readOutboxFile.ts'
import { testContext } from '../../support/context.ts'
import { createDatabase } from '../../support/database.ts'

/** A row that another program has sent is not sent again because the column that shows it has an unexpected name. */

let database: Awaited<ReturnType<typeof createDatabase>>
beforeAll(async () => {
  database = await createDatabase('template0')
})
afterAll(() => database[Symbol.asyncDispose]())

let made = 0

/** Creates a table and describes it with --write. @param rows values for each row */
async function describeTable(columns: string, rows: readonly string[] = []) {
  const table = `t${++made}`
  await database.pool.query(`create table ${table} (id bigint primary key, ${columns})`)
  for (const [i, values] of rows.entries())
    await database.pool.query(`insert into ${table} values (${i + 1}, ${values})`)
  return { table, ...(await run(table)) }
}

async function run(table: string) {
  const mappingsDir = mkdtempSync(join(tmpdir(), 'outboxd-describe-'))
  const env = { DATABASE_URL: database.url, MAPPINGS_DIR: mappingsDir }
  const looked = testContext(env)
  await describe.action(looked, table, {})
  const context = testContext(env)
  expect(await describe.action(context, table, { write: true })).toBe(0)
  return { mappingsDir, messages: context.messages(), printed: looked.printed() }
}

const business = 'customer_no varchar(10), amount numeric(10,2), ordered_at timestamptz, reference text'

test('if a column may show what was sent, the file loads only after you decide', async () => {
  const { messages, printed, mappingsDir } = await describeTable(
    `${business}, sent boolean not null default false, sent_at timestamptz`,
    [`'C1', 1, now(), 'old', true, now()`, `'C2', 2, now(), 'new', false, null`],
  )
  expect(printed).toMatch(
    /^state: +# FILL IN: does one of these say that a row was sent: sent \(boolean\), sent_at \(timestamp with time zone\)\?/m,
  )
  expect(printed).toMatch(/With state: none, every row in the table is sent, see outboxd adopt --start now$/m)
  expect(printed).toMatch(/^# state: { flag: COLUMN, new: false, done: true, set: \[queued\] }/m)
  expect(printed).toMatch(/^# state: { timestamp: COLUMN, set: \[completed\] }/m)
  expect(messages).toMatch(/^to fill in: .*outbox\.yaml:\d+ does one of these say that a row was sent: sent/m)
  expect(messages).not.toMatch(/no column of/)
  expect(() => loadOutboxFile(mappingsDir)).toThrow(/FILL IN is still there: /)
})

const document = 'type text, payload jsonb'

test('a flag, time, number or status of any name is listed as a column to decide on', async () => {
  const columns = {
    'sent boolean not null default false': 'sent (boolean)',
    'processed boolean': 'processed (boolean)',
    'sent_at timestamptz': 'sent_at (timestamp with time zone)',
    'processed_at timestamp': 'processed_at (timestamp without time zone)',
    "exported char(1) default 'N'": 'exported (character)',
    'status int not null default 0': 'status (integer)',
    'date_sent date': 'date_sent (date)',
    '"gesendetAm" timestamptz': 'gesendetAm (timestamp with time zone)',
    'uebertragen smallint': 'uebertragen (smallint)',
    'ISSENT boolean': 'issent (boolean)',
    'sent_to_crm bool': 'sent_to_crm (boolean)',
    "progress text check (progress in ('new', 'sent'))": 'progress (text; it has new, sent)',
  }
  const { printed, mappingsDir } = await describeTable(`${business}, ${Object.keys(columns).join(', ')}`)
  expect(printed).toContain(`does one of these say that a row was sent: ${Object.values(columns).join(', ')}?`)
  expect(() => loadOutboxFile(mappingsDir)).toThrow(/FILL IN is still there: /)
})

test('columns to decide on are also listed if the table has a payload column', async () => {
  const table = `t${++made}`
  await database.pool.query(`create table ${table} (id bigint generated always as identity primary key, ${document},
    exported char(1) default 'N', status int not null default 0, erp_sent boolean, date_sent date)`)
  const { printed } = await run(table)
  expect(printed).toMatch(
    /^state: +# FILL IN: does one of these .*: exported \(character\), status \(integer\), erp_sent \(boolean\), date_sent \(date\)/m,
  )
})

test('of two columns whose names suggest that a row was sent, none is chosen', async () => {
  const { printed } = await describeTable(`${business}, planned_sync_at timestamptz, requested_sync_at timestamptz`)
  expect(printed).toMatch(/^state: +# FILL IN: .*: planned_sync_at \(.*\), requested_sync_at \(/m)
})

test('a column whose name suggests nothing is listed if its values do', async () => {
  const { printed } = await describeTable(`${business}, phase text`, [
    `'C1', 1, now(), 'old', 'SENT'`,
    `'C2', 2, now(), 'new', 'NEW'`,
  ])
  expect(printed).toMatch(/^state: +# FILL IN: .*phase \(text; it has NEW, SENT\)/m)
})

test('a status with words such as sent is listed, and the example filter does not select sent rows', async () => {
  const { printed } = await describeTable(`${business}, status text`, [
    `'C1', 1, now(), 'old', 'sent'`,
    `'C2', 2, now(), 'new', 'new'`,
  ])
  expect(printed).toMatch(/^state: +# FILL IN: .*status \(text; it has new, sent\)/m)
  expect(printed).not.toMatch(/^filter/m)
  const { printed: mixed } = await describeTable(`${business}, status text`, [
    `'C1', 1, now(), 'old', 'draft'`,
    `'C1', 1, now(), 'old', 'sent'`,
    `'C2', 2, now(), 'new', 'new'`,
  ])
  expect(mixed).toMatch(/^filter: +# FILL IN: a condition such as status = 'new'/m)
  expect(mixed).toMatch(/^state: +# FILL IN: .*status \(text; it has draft, new, sent\)/m)
})

test('a state filled in as proposed loads', async () => {
  const { printed } = await describeTable(`${business}, sent boolean not null default false`)
  const entry = /^# (state: \{ flag.*?\})/m.exec(printed)?.[1]?.replace('COLUMN', 'sent') ?? ''
  const dir = mkdtempSync(join(tmpdir(), 'outboxd-describe-'))
  const text = printed.slice(printed.indexOf('schema:'), printed.indexOf('# --- ', 10))
  writeFileSync(
    join(dir, 'outbox.yaml'),
    text.replace(/^state:.*$/m, entry).replace(/^created_at:.*$/m, 'created_at: ordered_at'),
  )
  expect(loadOutboxFile(dir)?.state).toMatchObject({ kind: 'value', column: 'sent', waiting: ['false'] })
})

test('if no column is recognised, a warning names the columns to look at', async () => {
  const { messages, printed } = await describeTable(`${document}, archived boolean, valid_until timestamptz`, [
    `'data', '{}', false, null`,
    `'data', '{}', false, null`,
    `'data', '{}', false, null`,
  ])
  expect(printed).toMatch(/^state: none/m)
  expect(printed).toMatch(/Every row in the table is sent:[\s#]+see[\s#]+outboxd[\s#]+adopt[\s#]+--start/)
  expect(messages).toMatch(
    /warning: no column of "t\d+" looks like one that says whether a row was sent; look at: archived, valid_until/,
  )
  expect(messages).toMatch(/every row in the table is sent.*outboxd adopt --start now/)
})

test('quantities, persons, numbers and planned days are not listed as columns to decide on', async () => {
  const { printed } = await describeTable(
    `${business}, sent_by text, delivered_quantity numeric(10,2), export_no int, planned_dispatched_on date, absent boolean`,
    [`'C1', 1, now(), 'x', 'Jane', 1, 2, null, null`],
  )
  expect(printed).toMatch(/^state: none/m)
})

test('describe refuses a view and names the table below it', async () => {
  await database.pool.query(`create table below (id bigint primary key, ${business});
    create view plain as select * from below;
    create view joined as select a.id, b.reference from below a join below b using (id);
    create materialized view kept as select * from below; create unique index on kept (id)`)
  for (const view of ['plain', 'joined', 'kept']) {
    const context = testContext({ DATABASE_URL: database.url, MAPPINGS_DIR: mkdtempSync(join(tmpdir(), 'view-')) })
    expect(await describe.action(context, view, { write: true })).toBe(1)
    expect(context.messages()).toMatch(/is a (materialized )?view, .*outboxd describe 'public\.below'/)
  }
})
