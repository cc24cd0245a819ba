import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startDaemonProcess } from '../../support/daemon.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/**
 * A document changes while the daemon that captures its row is killed. Each version arrives at most once, and the last
 * one always.
 */

const mapping = `type: data
endpoint: data
document: { table: public.sale, key: id, condition: h.confirmed }
source: |
  select s.id, s.note, (select sum(price) from sale_line l where l.sale = s.id) as total from sale s where s.id = any($1)
fields:
  note: { from: note, type: string, required: true }
  total: { from: total, type: "decimal(10,2)", required: true }
body:
  customerId: C1
  data: { field1: value1, field2: "\${note}", order_date: "2026-11-20T10:00:00Z", total_amount: "\${total}" }
`

async function installed() {
  const harness = await setup({ idempotency: 'replay' })
  onTestFinished(() => harness[Symbol.asyncDispose]())
  const { pool } = harness
  await pool.query(`
    create table sale (id int primary key, note text, confirmed boolean not null default true);
    create table sale_line (sale int not null references sale, price numeric);
    insert into sale values (5, 'first-'); insert into sale_line values (5, 10.10)`)
  const folder = mkdtempSync(join(tmpdir(), 'outboxd-documents-'))
  writeFileSync(join(folder, 'data.yaml'), mapping)
  writeFileSync(join(folder, 'outbox.yaml'), 'changes: each\n')
  // A record on the wire at the kill is sent again, so that it does not hold back the document's next record.
  const env = { ...harness.env, MAPPINGS_DIR: folder, UNCERTAIN_POLICY: 'resend' }

  /** Opens a transaction of the ERP that changes the document. @returns a function that commits it */
  async function change(note: string) {
    const erp = await pool.connect()
    onTestFinished(() => erp.release())
    await erp.query('begin')
    await erp.query(`update sale set note = $1 where id = 5`, [note])
    await erp.query(`update sale_line set price = price + 1 where sale = 5`)
    await noteChange(erp)
    return { commit: () => erp.query('commit') }
  }
  const noteChange = (db: { query(sql: string): Promise<unknown> } = pool) =>
    db.query(`insert into outbox (type, key, payload) values ('data', '5', '{"id": 5, "captured_in": "1"}')`)

  /** Waits until a daemon waits for a lock in a statement that contains this text. */
  const blockedIn = (statement: string) =>
    until(
      () =>
        pool.query(
          `select from pg_stat_activity where wait_event_type = 'Lock' and application_name like 'outboxd%' and query ilike $1`,
          [`%${statement}%`],
        ),
      ({ rowCount }) => rowCount === 1,
    )
  const effects = async (...markers: string[]) =>
    Promise.all(markers.map(async (marker) => (await harness.outcome(marker)).effects))
  const restsWith = (rows: string[]) =>
    until(
      async () => (await pool.query(`select concat_ws(': ', status, error) as said from outbox order by id`)).rows,
      (found) => JSON.stringify(found.map(({ said }) => said)) === JSON.stringify(rows),
    )
  return { harness, pool, env, change, noteChange, blockedIn, effects, restsWith }
}

const firstRow = async (pool: { query(sql: string): Promise<{ rows: { id: string }[] }> }) =>
  (await pool.query('select min(id) as id from outbox')).rows[0]?.id

test('killed between document and ledger: read again', async () => {
  const { pool, env, change, noteChange, blockedIn, effects, restsWith } = await installed()
  await noteChange()
  const changing = await change('second-')
  const blocker = await pool.connect()
  onTestFinished(() => blocker.release())
  await blocker.query('begin; lock table outboxd.submission in share mode')
  await using killed = await startDaemonProcess(env)
  await blockedIn('insert into outboxd.submission')
  killed.signal('SIGKILL')
  await killed.ended()
  await changing.commit()
  await blocker.query('rollback')
  await using _restarted = await startDaemonProcess(env)
  await restsWith(['completed', `discarded: unchanged since outbox:${await firstRow(pool)}`])
  expect(await effects('first-', 'second-')).toEqual([0, 1])
})

test('killed between insert and mark: nothing is captured, and the newest content is sent', async () => {
  const { pool, env, change, noteChange, blockedIn, effects, restsWith } = await installed()
  await pool.query(`create function wait() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock(42); return new; end $$;
    create trigger wait before update on outbox for each row execute function wait()`)
  await noteChange()
  const changing = await change('second-')
  const blocker = await pool.connect()
  onTestFinished(() => blocker.release())
  await blocker.query('begin; select pg_advisory_xact_lock(42)')
  // Nothing is sent or written back before the kill.
  await pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'test')`)
  await using killed = await startDaemonProcess(env)
  await blockedIn('update "public"."outbox"')
  killed.signal('SIGKILL')
  await killed.ended()
  await blocker.query('rollback')
  await changing.commit()
  await pool.query('drop trigger wait on outbox; delete from outboxd.pause')
  await using _restarted = await startDaemonProcess(env)
  await restsWith(['completed', `discarded: unchanged since outbox:${await firstRow(pool)}`])
  expect(await effects('first-', 'second-')).toEqual([0, 1])
})

test('changes after capture, and kills: the last is sent, none twice', async () => {
  const { pool, env, change, noteChange, effects, harness } = await installed()
  await noteChange()
  const markers = ['first-', ...Array.from({ length: 6 }, (_, i) => `version-${i}-`)]
  let daemon = await startDaemonProcess(env)
  for (const marker of markers.slice(1)) {
    const changing = await change(marker)
    const before = await pool.query(`select count(*)::int as n from outboxd.submission`)
    daemon.signal('SIGKILL')
    await daemon.ended()
    daemon = await startDaemonProcess(env)
    await changing.commit()
    await until(
      () => pool.query('select count(*)::int as n from outboxd.submission'),
      ({ rows }) => rows[0]?.n > before.rows[0]?.n,
    )
  }
  await using _last = daemon
  const last = markers.at(-1) ?? ''
  await until(
    () => harness.outcome(last),
    ({ effects }) => effects > 0,
  )
  await until(
    () => pool.query(`select from outbox where status not in ('completed', 'discarded')`),
    ({ rowCount }) => rowCount === 0,
  )
  expect((await effects(...markers)).filter((count) => count > 1)).toEqual([])
  expect(await effects(last)).toEqual([1])
})
