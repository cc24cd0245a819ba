import { describe, expect, onTestFinished, test } from 'vitest'
import type { RowStatus } from '../../src/model/outbox.ts'
import type { State } from '../../src/model/submission.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { type Setup, setup } from './setup.ts'
import { writeBackRows } from './writeBackRows.ts'

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

test('a locked row is skipped, and other rows are written', async () => {
  const given = await withRows(3)
  const form = await given.connect()
  await form.query('begin; select from outbox where id = 2 for update')
  expect(await given.report(status('1'), status('2'), status('3'))).toEqual(['written', 'locked', 'written'])
  expect(await Promise.all(['1', '2', '3'].map((id) => statusOf(given, id)))).toEqual([
    'completed',
    'queued',
    'completed',
  ])
  await form.query(`update outbox set type = 'changed by the form' where id = 2; commit`)
  expect(await given.report(status('2'))).toEqual(['written'])
})

test('a row that is already completed counts as written and is not changed, and a missing row counts as gone', async () => {
  const given = await withRows(1)
  await given.report(status('1'))
  expect(await given.report(status('1', 'failed'), status('99'))).toEqual(['written', 'gone'])
  expect(await statusOf(given, '1')).toBe('completed')
})

test('if a trigger refuses one row, no row is written, and the error is Postgres’s', async () => {
  const given = await withRows(2)
  await trigger(given, '2', `raise exception 'period is closed'`)
  await expect(given.report(status('1'), status('2'))).rejects.toMatchObject({
    code: 'P0001',
    message: 'period is closed',
  })
  expect(await statusOf(given, '1')).toBe('queued')
})

test('if a trigger waits for a lock, the row is refused after a second', async () => {
  const given = await withRows(1)
  await given.pool.query('create table customer (id int primary key); insert into customer values (1)')
  await trigger(given, '1', 'perform from customer where id = 1 for update')
  const form = await given.connect()
  await form.query('begin; update customer set id = 1')
  await expect(given.report(status('1'))).rejects.toMatchObject({ code: '55P03' })
})

describe('an update that changes nothing is noticed', () => {
  test('if a trigger suppresses it', async () => {
    const given = await withRows(2)
    await trigger(given, '2', 'return null')
    expect(await given.report(status('1'), status('2'))).toEqual(['written', 'unchanged'])
  })

  test('if a trigger sets the state back', async () => {
    const given = await withRows(2)
    await trigger(given, '2', 'new.status := old.status; return new')
    expect(await given.report(status('1'), status('2'))).toEqual(['written', 'unchanged'])
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
    expect(await table.report(status('1', 'accepted'))).toEqual(['written'])
    const view = await setup({
      ddl: `create table base (id bigint primary key, st text); insert into base values (1, 'q'); create view source as select * from base;
        create function write() returns trigger language plpgsql as $$ begin
          update base set st = new.st where id = new.id; return old; end $$;
        create trigger write instead of update on source for each row execute function write()`,
      yaml: busy,
    })
    expect(await view.report(status('1', 'completed'))).toEqual(['written'])
  })

  test('if row-level security has no policy for it', async () => {
    const given = await withRows(1)
    const role = `clerk_${new URL(given.url).pathname.slice(6)}`
    await given.pool.query(`create role ${role} login; grant select, update on outbox to ${role};
      grant usage on schema outboxd to ${role}; grant select on outboxd.ledger, outboxd.outbox_cursor to ${role};
      alter table outbox enable row level security; create policy see on outbox for select using (true);
      create policy write on outbox for update using (id <> 1)`)
    onTestFinished(() => given.pool.query(`drop owned by ${role}; drop role ${role}`).then(() => {}))
    await given.pool.query(`alter database ${new URL(given.url).pathname.slice(1)} set role = '${role}'`)
    const { createPool } = await import('../../src/postgres/database.ts')
    const pool = createPool({ url: given.url, name: 'x', connections: 1, onIdleError: () => {} })
    onTestFinished(() => pool.end())
    const outbox = new Outbox(pool, 'outbox', 1_000, pool)
    expect(await writeBackRows(outbox, [status('1')])).toEqual(['locked'])
  })
})
