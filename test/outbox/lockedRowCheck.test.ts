import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { readProblems } from '../../src/ledger/problems.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { LockedRowWatch } from '../../src/outbox/lockedRows.ts'
import { setup } from '../outbox/setup.ts'
import { statusSays } from '../support/statusSays.ts'

/** Watches the table of a test. */
async function watch(table: { ddl?: string; yaml?: string } = {}) {
  const { pool, outbox, capture, connect, url } = await setup(table)
  const open = () => {
    const watch = new LockedRowWatch(outbox)
    return () => watch.runOnce()
  }
  const look = open()
  await capture() // binds the ledger to this table
  return {
    pool,
    url,
    capture,
    connect,
    look,
    /** A second instance, which has seen no locks yet. */
    another: open,
    async told() {
      return (await readProblems(pool, 100)).filter(({ kind }) => kind === 'row_locked')
    },
  }
}

async function openForm(connect: Awaited<ReturnType<typeof watch>>['connect'], id: string | number) {
  const form = await connect()
  await form.query(`set application_name = 'order form'`)
  const { rows } = await form.query<{ pid: number }>('select pg_backend_pid() as pid')
  await form.query('begin')
  await form.query('select from outbox where id = $1 for update', [id])
  return { form, pid: rows[0]?.pid }
}

test('if a form keeps a row locked, `row_locked` names its session until it ends', async () => {
  const { pool, url, capture, connect, look, told } = await watch()
  await pool.query(`insert into outbox (type, payload) values ('data', '{"secret": 1}'), ('data', '{}')`)
  const { form, pid } = await openForm(connect, 1)
  expect(await capture()).toEqual(['2'])
  await look()
  expect(await told()).toEqual([])

  await look()
  const [problem, ...others] = await told()
  expect(others).toEqual([])
  expect(problem).toMatchObject({ subject: '1', detail: expect.stringContaining(`pid ${pid} (order form, idle in`) })
  expect(problem?.detail).not.toContain('select')
  await writeHeartbeat(pool, { id: randomUUID(), version: '1', host: 'erp-1', settings: {} })
  const says = await statusSays({ DATABASE_URL: url })
  expect(says).not.toContain('All is well')
  expect(says).toMatch(/The daemon cannot capture 1 row of the outbox \(1\): another session has it locked/)

  await form.query('rollback')
  expect(await capture()).toEqual(['1'])
  await look()
  expect(await told()).toEqual([])
})

test('two short locks of a busy row are no problem', async () => {
  const { pool, connect, look, told } = await watch()
  await pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  const { form } = await openForm(connect, 1)
  await look()
  await form.query('rollback')
  await openForm(connect, 1)
  await look()
  expect(await told()).toEqual([])
  await look()
  expect(await told()).toHaveLength(1)
})

test('a second instance clears the problem only once the row is no longer locked', async () => {
  const { pool, connect, look, another, told } = await watch()
  await pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  const { form } = await openForm(connect, 1)
  await look()
  await look()
  const [problem] = await told()
  await another()()
  expect(await told()).toMatchObject([{ subject: '1', sinceMs: problem?.sinceMs }])
  await form.query('rollback')
  await another()()
  expect(await told()).toEqual([])
})

test('a row locked by two sessions, or by a savepoint of one, is reported too', async () => {
  const { pool, connect, look, told } = await watch()
  await pool.query(`insert into outbox (type, payload) values ('data', '{}'), ('data', '{}')`)
  for (const reader of [await connect(), await connect()])
    await reader.query('begin; select from outbox where id = 1 for share')
  const nested = await connect()
  await nested.query('begin; savepoint s; update outbox set key = key where id = 2; release s')
  await look()
  await look()
  const bySome = expect.stringContaining('by several sessions, or by one that our user may not see')
  expect(await told()).toMatchObject([
    { subject: '1', detail: bySome },
    { subject: '2', detail: bySome },
  ])
})

test('a row with a new reference or a rolled back update does not count as locked', async () => {
  const { pool, connect, look, told } = await watch({
    ddl: 'create table line (outbox_id bigint references outbox)',
  })
  await pool.query(`insert into outbox (type, payload) values ('data', '{}'), ('data', '{}')`)
  const erp = await connect()
  await erp.query('begin; insert into line values (1)')
  await pool.query('begin; update outbox set key = key where id = 2; rollback')
  await look()
  await look()
  expect(await told()).toEqual([])
})

test('if the table is not marked, a locked row is captured and not reported', async () => {
  const ddl = 'create table doc (id bigint generated always as identity primary key, body jsonb)'
  const { pool, capture, connect, look, told } = await watch({ ddl, yaml: cursorTable })
  await pool.query(`insert into doc (body) values ('{}'), ('{}')`)
  const form = await connect()
  await form.query('begin; select from doc where id = 1 for update')
  await look()
  expect(await capture()).toEqual(['1', '2'])
  await look()
  expect(await told()).toEqual([])
})
const cursorTable = 'table: doc\nid: id\ntype: { constant: data }\npayload: body\nstate: none\nsequence: id\n'

test('the metrics count locked rows', async () => {
  const { pool, connect, look, told } = await watch()
  await pool.query(`insert into outbox (type, payload) values ('data', '{}')`)
  await openForm(connect, 1)
  await look()
  await look()
  const { kind } = (await told())[0] ?? { kind: 'row_skipped' as const }
  const metrics = createMetrics({ version: 'test', clock: systemClock })
  metrics.setSnapshot({
    ...(await readLedgerSnapshot(pool)),
    pauses: [],
    outboxWaiting: 1,
  })
  expect(await metrics.render()).toContain(`outboxd_problems{kind="${kind}"} 1`)
})
