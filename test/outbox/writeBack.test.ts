import { describe, expect, onTestFinished, test } from 'vitest'
import type { RowStatus, State } from '../../src/model.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { writeBackRows } from '../../src/outbox/writeBack.ts'
import { until } from '../support/until.ts'
import { type Setup, setup } from './setup.ts'

const status = (outboxId: string, state: State = 'completed'): RowStatus => ({
  outboxId,
  state,
  transactionId: `TX-${outboxId}`,
  errorCode: null,
  error: null,
})

async function withRows(count: number): Promise<Setup> {
  const given = await setup()
  await given.pool.query(`insert into outbox (type, payload) select 'data', '{}' from generate_series(1, $1)`, [count])
  await given.capture()
  return given
}

const statusOf = async ({ pool }: Setup, id: string) =>
  (await pool.query('select status from outbox where id = $1', [id])).rows[0].status

async function trigger({ pool }: Setup, id: string, what: string): Promise<void> {
  await pool.query(`create function meddle() returns trigger language plpgsql as $$
    begin if old.id = ${id} then ${what}; end if; return new; end $$;
    create trigger meddle before update on outbox for each row execute function meddle()`)
}

test('a locked row is skipped, with the process that locks it, and other rows are written', async () => {
  const given = await withRows(3)
  const form = await given.connect()
  await form.query('begin')
  const { rows } = await form.query('select pg_backend_pid() as pid from outbox where id = 2 for update')
  const telling = await given.report(status('1'), status('2'), status('3'))
  expect(telling).toMatchObject({
    kind: 'done',
    rows: [{ kind: 'written' }, { kind: 'locked', holder: rows[0].pid }, { kind: 'written' }],
  })
  expect(await Promise.all(['1', '2', '3'].map((id) => statusOf(given, id)))).toEqual([
    'completed',
    'queued',
    'completed',
  ])
  await form.query(`update outbox set type = 'changed by the form' where id = 2; commit`)
  expect(await given.report(status('2'))).toMatchObject({ rows: [{ kind: 'written' }] })
})

test('a row that is already completed counts as written and is not changed, and a missing row counts as gone', async () => {
  const given = await withRows(1)
  await given.report(status('1'))
  expect(await given.report(status('1', 'failed'), status('99'))).toMatchObject({
    rows: [{ kind: 'written' }, { kind: 'gone' }],
  })
  expect(await statusOf(given, '1')).toBe('completed')
})

test('if a trigger refuses one row, no row is written, and the result has its message', async () => {
  const given = await withRows(2)
  await trigger(given, '2', `raise exception 'period is closed'`)
  expect(await given.report(status('1'), status('2'))).toMatchObject({
    kind: 'refused',
    statuses: [{ outboxId: '1' }, { outboxId: '2' }],
    code: 'P0001',
    message: 'period is closed',
    why: 'row',
  })
  expect(await statusOf(given, '1')).toBe('queued')
})

test.each([
  '40001',
  '25006',
  '53200',
  '57P01',
])('a trigger’s error is a refusal of the row, even with the code of a failing database (%s)', async (code) => {
  const given = await withRows(2)
  await trigger(given, '2', `raise exception using errcode = '${code}', message = 'closed'`)
  // The daemon drops its session. The session's lock keeps other writers out until the server has noticed.
  const reportWhenFree = (...due: ReturnType<typeof status>[]) =>
    until(
      () => given.report(...due),
      ({ kind }) => kind !== 'busy',
    )
  expect(await reportWhenFree(status('1'), status('2'))).toMatchObject({ kind: 'refused', code, why: 'row' })
  expect(await reportWhenFree(status('1'))).toMatchObject({ kind: 'done' })
})

test('a constraint that is checked at the commit is a refusal', async () => {
  const given = await withRows(1)
  await given.pool.query(`create function refuse() returns trigger language plpgsql as $$
    begin raise exception 'at the end' using errcode = '23514'; end $$;
    create constraint trigger refuse after update on outbox deferrable initially deferred for each row execute function refuse()`)
  expect(await given.report(status('1'))).toMatchObject({ kind: 'refused', code: '23514' })
})

test('if a trigger waits for a lock, the refusal names a lock as the cause', async () => {
  const given = await withRows(1)
  await given.pool.query('create table customer (id int primary key); insert into customer values (1)')
  await trigger(given, '1', 'perform from customer where id = 1 for update')
  const form = await given.connect()
  await form.query('begin; update customer set id = 1')
  expect(await given.report(status('1'))).toMatchObject({ kind: 'refused', code: '55P03', why: 'lock' })
})

test.each([
  ['a column is gone', 'alter table outbox drop column error'],
  ['the database became read-only', 'alter database :name set default_transaction_read_only = on'],
  [
    'a trigger refuses each statement',
    `create function refuse() returns trigger language plpgsql as $$
     begin raise exception 'closed'; end $$;
     create trigger refuse before update on outbox for each statement execute function refuse()`,
  ],
])('if %s, the error is thrown and not blamed on a row', async (_, sql) => {
  const given = await withRows(1)
  await given.report(status('1', 'accepted')) // the row shows an open state
  const name = new URL(given.url).pathname.slice(1)
  await given.pool.query(sql.replace(':name', name))
  const { createPool } = await import('../../src/postgres/database.ts')
  const pool = createPool({ url: given.url, name: 'x', connections: 1, onIdleError: () => {} })
  onTestFinished(() => pool.end())
  const outbox = new Outbox(pool, 'outbox', 1_000, pool)
  await mayHaveWaitingRows(outbox).catch(() => {})
  await expect(writeBackRows(outbox, async () => [status('1')])).rejects.toThrow()
})

test('if the whole table is locked, the error is thrown and not blamed on a row', async () => {
  const given = await withRows(1)
  const form = await given.connect()
  await form.query('begin; lock table outbox in share mode')
  await expect(given.report(status('1'))).rejects.toMatchObject({ code: '55P03' })
})

describe('an update that changes nothing is noticed', () => {
  test('if a trigger suppresses it', async () => {
    const given = await withRows(2)
    await trigger(given, '2', 'return null')
    expect(await given.report(status('1'), status('2'))).toMatchObject({
      rows: [{ kind: 'written' }, { kind: 'ineffective', why: expect.stringContaining('trigger') }],
    })
  })

  test('if a trigger sets the state back', async () => {
    const given = await withRows(2)
    await trigger(given, '2', 'new.status := old.status; return new')
    expect(await given.report(status('1'), status('2'))).toMatchObject({
      rows: [{ kind: 'written' }, { kind: 'ineffective', why: expect.stringContaining('sets the state back') }],
    })
  })

  test('but not if a trigger writes the state in capitals, or a view’s trigger returns the old row', async () => {
    const yaml = (state: string) =>
      `table: source\nid: id\nid_unique: promised\ntype: { constant: data }\npayload: { columns: [id] }\nstate: ${state}`
    const busy = yaml('{ status: st, new: n, queued: q, accepted: q, completed: c }')
    const table = await setup({
      ddl: `create table source (id bigint primary key, st text); insert into source values (1, 'Q');
        create function upper_st() returns trigger language plpgsql as $$ begin new.st := upper(new.st); return new; end $$;
        create trigger upper_st before update on source for each row execute function upper_st()`,
      yaml: busy,
    })
    expect(await table.report(status('1', 'accepted'))).toMatchObject({ rows: [{ kind: 'written' }] })
    const view = await setup({
      ddl: `create table base (id bigint primary key, st text); insert into base values (1, 'q'); create view source as select * from base;
        create function write() returns trigger language plpgsql as $$ begin
          update base set st = new.st where id = new.id; return old; end $$;
        create trigger write instead of update on source for each row execute function write()`,
      yaml: busy,
    })
    expect(await view.report(status('1', 'completed'))).toMatchObject({ rows: [{ kind: 'written' }] })
  })

  test('if row-level security has no policy for it', async () => {
    const given = await withRows(1)
    const role = `clerk_${new URL(given.url).pathname.slice(6)}`
    await given.pool.query(`create role ${role} login; grant select, update on outbox to ${role};
      grant usage on schema outboxd to ${role}; grant select on outboxd.ledger to ${role};
      alter table outbox enable row level security; create policy see on outbox for select using (true);
      create policy write on outbox for update using (id <> 1)`)
    onTestFinished(() => given.pool.query(`drop owned by ${role}; drop role ${role}`).then(() => {}))
    await given.pool.query(`alter database ${new URL(given.url).pathname.slice(1)} set role = '${role}'`)
    const { createPool } = await import('../../src/postgres/database.ts')
    const pool = createPool({ url: given.url, name: 'x', connections: 1, onIdleError: () => {} })
    onTestFinished(() => pool.end())
    const outbox = new Outbox(pool, 'outbox', 1_000, pool)
    expect(await writeBackRows(outbox, async () => [status('1')])).toMatchObject({
      rows: [{ kind: 'ineffective', why: expect.stringContaining('row-level security') }],
    })
  })
})

describe('a later state is never written over by an earlier one', () => {
  test('a second write-back is refused as busy while another one runs', async () => {
    const given = await withRows(1)
    const inner: string[] = []
    await writeBackRows(given.outbox, async () => {
      inner.push((await given.report(status('1'))).kind)
      return [status('1', 'accepted')]
    })
    expect(inner).toEqual(['busy'])
    expect(await statusOf(given, '1')).toBe('accepted')
  })

  test('an instance that was suspended and resumes does not overwrite a later state', async () => {
    const given = await withRows(1)
    const late = writeBackRows(given.outbox, async () => {
      await given.pool.query(`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and classid = 7163
        and database = (select oid from pg_database where datname = current_database())`)
      await expect.poll(async () => (await given.report(status('1', 'failed'))).kind).toBe('done')
      return [status('1', 'accepted')]
    })
    await expect(late).rejects.toThrow()
    expect(await statusOf(given, '1')).toBe('failed')
  })
})
