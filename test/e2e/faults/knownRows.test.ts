import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { command as adopt } from '../../../src/commands/adopt.ts'
import { command as check } from '../../../src/commands/check.ts'
import { command as show } from '../../../src/commands/show.ts'
import { readLedgerSnapshot } from '../../../src/ledger/snapshot.ts'
import { testContext } from '../../support/context.ts'
import { daemonEnvironment } from '../../support/daemon.ts'
import { eventually } from '../../support/eventually.ts'
import { startProgram } from '../../support/program.ts'
import { runStatus } from '../../support/statusSays.ts'
import { type Installation, install } from '../installation.ts'

/**
 * Recognises rows: in a table that was emptied, in a different table, and in a table with old rows that must not be
 * sent.
 */

const mapping = { 'data.yaml': readFileSync('mappings/data.yaml', 'utf8') }
const payload = (field2: string) =>
  `{"customerId": "C1", "orderDate": "2026-11-20T10:00:00+01:00", "amount": 1.50, "field2": "${field2}"}`
const insert = ({ pool }: Installation, field2: string) =>
  pool.query(`insert into outbox (type, payload) values ('data', '${payload(field2)}')`)
const rows = async ({ pool }: Installation) =>
  (
    await pool.query<{ said: string }>(
      `select id || ' ' || (payload ->> 'field2') || ' ' || status as said from outbox order by id`,
    )
  ).rows.map(({ said }) => said)
const contextOf = ({ url }: Installation, env = {}) => testContext({ DATABASE_URL: url, ...env })

async function statusOf(installation: Installation, env = {}): Promise<string> {
  const { context } = await runStatus(() => contextOf(installation, env))
  return context.printed() + context.messages()
}

test('a table is emptied, its ids start over: `row_conflict` until the row gets an unused id', async () => {
  const given = await install(mapping)
  await insert(given, 'first')
  await given.startInstance()
  await eventually(async () => expect(await rows(given)).toEqual(['1 first completed']))
  await given.pool.query('truncate outbox restart identity')
  await insert(given, 'second')
  await eventually(async () => expect((await readLedgerSnapshot(given.pool)).problems).toEqual({ row_conflict: 1 }))
  expect(await rows(given)).toEqual(['1 second new'])
  const standing = await statusOf(given)
  expect(standing).toContain('1 row of the outbox (1) is not the row captured under its id, and not sent')
  expect(standing).not.toContain('All is well')
  expect(standing).toContain('`outboxd show outbox:1` shows both')
  const shown = contextOf(given)
  expect(await show.action(shown, 'outbox:1', {})).toBe(0)
  expect(shown.printed()).toMatch(
    /conflict: the outbox row 1 is another than the one that was captured.*\n {2}this record {5}created \S+, type data, no key\n {2}the row now {5}created \S+, type data, no key\n.*LEDGER_SCHEMA/,
  )
  await insert(given, 'third')
  await eventually(async () => expect(await rows(given)).toEqual(['1 second new', '2 third completed']))
  await given.pool.query('delete from outbox where id = 1')
  await insert(given, 'second')
  await eventually(async () => expect(await rows(given)).toEqual(['2 third completed', '3 second completed']))
  expect((await given.arrivals()).map((body) => /"field2":"(\w+)"/.exec(body)?.[1])).toEqual([
    'first',
    'third',
    'second',
  ])
})

test('a different outbox table: the daemon does not start until it is adopted', async () => {
  const given = await install(mapping)
  await given.startInstance()
  await given.pool.query('create table other (like outbox including all)')
  await expect(given.startInstance({ OUTBOX_TABLE: 'other' })).rejects.toThrow(
    'the ledger belongs to the outbox public.outbox with ids in the column id',
  )
  const context = contextOf(given, { OUTBOX_TABLE: 'other' })
  expect(await check.action(context, {})).not.toBe(0)
  expect(context.printed()).toContain('PROBLEM  outbox: the ledger belongs to the outbox public.outbox')
  expect(await adopt.action(contextOf(given, { OUTBOX_TABLE: 'other' }), { same: true, yes: true })).toBe(0)
  await given.startInstance({ OUTBOX_TABLE: 'other' })
})

/** The table that `migrate --outbox` makes, described with a start. */
const described = (start: string) => `
table: outbox
id: id
type: type
created_at: created_at
payload: payload
state: { status: status, new: new, queued: queued, completed: completed }
start: ${start}`

test('old rows of a described table: `run` asks where to begin, and leaves them alone as told, on all instances', async () => {
  const given = await install({ ...mapping, 'outbox.yaml': described('now').replace('start: now', '') })
  await insert(given, 'old')
  await insert(given, 'older')
  await given.pool.query(`update outbox set status = 'queued' where id = 1`)
  const env = daemonEnvironment(given.url, given.serviceUrl, { MAPPINGS_DIR: given.mappingsDir })
  await using daemon = startProgram({ args: ['run'], env })
  const { code, stderr } = await daemon.ended()
  expect(code).toBe(2)
  expect(stderr).toMatch(/"public"."outbox" has 2 rows.*start: now {2}.*start: beginning {2}.*start: id:N {2}/s)
  const checked = contextOf(given, { MAPPINGS_DIR: given.mappingsDir })
  expect(await check.action(checked, {})).not.toBe(0)
  expect(checked.printed()).toMatch(/PROBLEM {2}outbox: the ledger is new, and the table/)

  await writeFile(join(given.mappingsDir, 'outbox.yaml'), described('now'))
  await given.startInstance()
  await given.startInstance()
  await insert(given, 'fresh')
  await eventually(async () => expect(await rows(given)).toEqual(['1 old queued', '2 older new', '3 fresh completed']))
  const shown = await statusOf(given, { MAPPINGS_DIR: given.mappingsDir })
  expect(shown).toContain('The daemon ignores rows with an id below 3.')
  expect(shown).toContain('0 in the outbox')

  await writeFile(join(given.mappingsDir, 'outbox.yaml'), described('beginning'))
  await given.startInstance()
  const later = contextOf(given, { MAPPINGS_DIR: given.mappingsDir })
  await check.action(later, {})
  expect(later.printed()).toContain('`start: beginning` in outbox.yaml has no effect')
})

const remembered = (sequence: string) => `
table: source
id: id
type: { constant: data }
payload: payload
state: none
start: beginning
${sequence}`
const source = `create table source (id bigint generated always as identity primary key, payload jsonb, note text)`
const fill = ({ pool }: Installation, field2: string, rows: number) =>
  pool.query(`insert into source (payload) select '${payload(field2)}' from generate_series(1, ${rows})`)
const arrived = async (given: Installation) =>
  Object.fromEntries(
    [...Map.groupBy(await given.arrivals(), (body) => /"field2":"(\w+)"/.exec(body)?.[1] ?? '')].map(([name, all]) => [
      name,
      all.length,
    ]),
  )

test('ids start over and pass the cursor: `loop_failing`, and nothing is sent', async () => {
  const given = await install({ ...mapping, 'outbox.yaml': remembered('sequence: id') })
  await given.pool.query(source)
  const env = { MAPPINGS_DIR: given.mappingsDir }
  await fill(given, 'first', 3)
  const stop = await given.startInstance()
  await eventually(async () => expect(await arrived(given)).toEqual({ first: 3 }))
  await eventually(async () =>
    expect((await given.pool.query('select position from outboxd.outbox_cursor')).rows).toEqual([{ position: '3' }]),
  )
  await stop()
  await given.pool.query('truncate source restart identity')
  await fill(given, 'second', 5)
  await given.startInstance()
  await eventually(async () =>
    expect((await readLedgerSnapshot(given.pool)).problems).toMatchObject({ loop_failing: 1 }),
  )
  expect(await statusOf(given, env)).not.toContain('All is well')
  expect(await arrived(given)).toEqual({ first: 3 })
})

test('rows wait before the start position: counted', async () => {
  const given = await install({ ...mapping, 'outbox.yaml': described('id:3') })
  const env = { MAPPINGS_DIR: given.mappingsDir }
  for (const field2 of ['first', 'second', 'third']) await insert(given, field2)
  await given.startInstance()
  await eventually(async () =>
    expect(await statusOf(given, env)).toMatch(
      /^All is well: everything is sent\. 2 rows before the start position wait/,
    ),
  )
  expect(await statusOf(given, env)).toMatch(
    /The daemon ignores rows with an id below 3\. 2 rows before the start position wait, the oldest created 2/,
  )
  const checked = contextOf(given, env)
  await check.action(checked, {})
  expect(checked.printed() + checked.messages()).toContain('2 rows before the start position wait')
  const shown = contextOf(given, env)
  expect(await show.action(shown, 'outbox:1', {})).toBe(3)
  expect(shown.messages()).toContain('the row 1 lies before the start position, so it is not sent')
})
