import { expect, test } from 'vitest'
import { adopt } from '../../src/ledger/operator/adopt.ts'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { mayHaveWaitingRows, readWaitingRows } from '../../src/outbox/readRows.ts'
import { testActor } from '../support/testActor.ts'
import { rests, type Setup, setup } from './setup.ts'

/** A changed outbox.yaml includes rows that the former one left out. They may be behind the cursor. */

const testService = { baseUrl: 'https://service.example', authUrl: 'https://auth.example', clientId: 'me' }
const ddl = `create table source (id bigint generated always as identity primary key, status text default 'released',
  payload jsonb default '{}', synced_at timestamptz)`
const common = 'table: source\nid: id\ntype: { constant: data }\npayload: payload\n'
const released = `filter: status = 'released'\n`
const widened = `filter: status in ('released', 'draft')\n`
const completed = 'state: { timestamp: synced_at, set: [completed] }\n'
const forms = {
  'a filter, in the order of transactions': { before: `${completed}${released}`, after: `${completed}${widened}` },
  'a filter, by a sequence': {
    before: `state: none\nsequence: id\n${released}`,
    after: `state: none\nsequence: id\n${widened}`,
  },
  'the values of waiting rows': {
    before: 'state: { status: status, new: released, completed: done }\n',
    after: 'state: { status: status, new: [released, draft], completed: done }\n',
  },
}

/** Rows 4 and 5 are captured, and the cursor has passed 1 to 3. */
async function passed(before: string): Promise<Setup> {
  const given = await setup({ ddl, yaml: `${common}${before}` })
  await given.pool.query(
    `insert into source (status) values ('draft'), ('draft'), ('draft'), ('released'), ('released')`,
  )
  expect(await given.capture()).toEqual(['4', '5'])
  await rests(given)
  return given
}

for (const [name, { before, after }] of Object.entries(forms)) {
  test(`${name}: rows that a changed outbox.yaml includes are counted and captured, and no row twice`, async () => {
    const { describedAs } = await passed(before)
    const { outbox, capture } = describedAs(`${common}${after}`)
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 3 })
    expect(await mayHaveWaitingRows(outbox)).toBe(true)
    expect((await readWaitingRows(outbox, 10)).map(({ outboxId }) => outboxId)).toEqual(['1', '2', '3'])
    expect(await capture()).toEqual(['1', '2', '3'])
    await rests({ capture, outbox })
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 0 })
  })
}

test('daemons with two different outbox.yaml files each have their own cursor', async () => {
  const { before, after } = forms['a filter, in the order of transactions']
  const { pool, capture, describedAs } = await passed(before)
  const wide = describedAs(`${common}${after}`)
  expect(await wide.capture()).toEqual(['1', '2', '3'])
  await rests(wide)
  const positions = async () =>
    (await pool.query('select outbox, position from outboxd.outbox_cursor order by advanced_at')).rows
  const standing = await positions()
  expect(standing).toHaveLength(2)
  expect([await capture(), await wide.capture(), await capture(), await wide.capture()].flat()).toEqual([])
  expect(await positions()).toEqual(standing)
})

test('rows before the start position stay excluded when outbox.yaml changes', async () => {
  const { before, after } = forms['a filter, in the order of transactions']
  const { ledger, outbox, describedAs } = await passed(before)
  const start = { id: '3', at: null }
  await adopt(
    { ledger, actor: testActor },
    { table: await outbox.readIdentity(), service: testService, start, isSame: false },
  )
  const wide = describedAs(`${common}${after}`)
  expect(await readBacklog(wide.outbox)).toMatchObject({ waiting: 1 })
  expect(await wide.capture()).toEqual(['3'])
})

test('a start position that is moved back includes the rows after it', async () => {
  const { before, after } = forms['a filter, by a sequence']
  const given = await setup({ ddl, yaml: `${common}${after}` })
  const start = async (id: string) => {
    const table = await given.outbox.readIdentity()
    await adopt(
      { ledger: given.ledger, actor: testActor },
      { table, service: testService, start: { id, at: null }, isSame: false },
    )
  }
  await given.pool.query(`insert into source (status) select 'released' from generate_series(1, 5)`)
  await given.outbox.bindLedger('test')
  await start('4')
  expect(await given.capture()).toEqual(['4', '5'])
  await rests(given)
  await start('2')
  expect(await given.capture()).toEqual(['2', '3'])
  expect(await readBacklog(given.describedAs(`${common}${before}`).outbox)).toMatchObject({ waiting: 0 })
})

test('after the cursor starts over, known rows are not counted as waiting', async () => {
  const { before, after } = forms['a filter, by a sequence']
  const { pool, describedAs } = await passed(before)
  await pool.query(`insert into source (status) select 'released' from generate_series(6, 9000);
    insert into outboxd.submission (id, outbox_id, type, recorded_at, state, idempotency_key, ended_at)
      select gen_random_uuid(), n::text, 'data', now(), 'rejected', gen_random_uuid(), now() from generate_series(6, 9000) n;
    insert into source (status) values ('draft')`)
  expect(await readBacklog(describedAs(`${common}${after}`).outbox)).toMatchObject({ waiting: 4 })
})
