import { beforeAll, expect, test } from 'vitest'
import { command as status } from '../../src/commands/status.ts'
import { testContext } from '../support/context.ts'
import type { Daemon } from '../support/daemon.ts'
import { openForFile } from '../support/openForFile.ts'
import { statusSays } from '../support/statusSays.ts'
import { until } from '../support/until.ts'
import { setup } from './faults/harness.ts'

/** `status` while a daemon runs. */

const harness = openForFile(() => setup())
let daemon: Daemon
beforeAll(async () => {
  daemon = await harness.start()
})

const said = () => statusSays(harness.env)

async function read() {
  const context = testContext(harness.env)
  await status.action(context, { json: true })
  return JSON.parse(context.printed())
}

test('status counts a record’s requests in the last hour by kind, and its outcome is written back', async () => {
  await harness.insert('first-')
  await harness.becomes('first-', 'completed')
  await harness.fault({ kind: 'answer', status: 500, endpoint: 'submit', times: 1 })
  await harness.insert('second-')
  await harness.becomes('second-', 'completed')
  const { service } = await until(read, ({ reportsDue }) => reportsDue.number === 0)
  expect(service.lastHour.submit).toEqual({ requests: 3, failed: 1, answered: 3, slow: 0 })
  expect(service.lastHour.status.requests).toBeGreaterThanOrEqual(2)
  expect(service.lastDay).toEqual(service.lastHour)
})

test('/readyz stays 200 while the service refuses our sign-in, and names the pause', async () => {
  const ready = async () => {
    const answer = await fetch(`http://127.0.0.1:${daemon.port}/readyz`)
    return { status: answer.status, ...((await answer.json()) as { ok: boolean; pauses: { reason: string }[] }) }
  }
  expect(await ready()).toMatchObject({ status: 200, pauses: [] })
  await harness.fault({ kind: 'answer', status: 401, endpoint: 'submit', times: 2 })
  await harness.insert('refused-')
  const paused = await until(ready, ({ pauses }) => pauses.length > 0)
  expect(paused).toMatchObject({ status: 200, ok: true, pauses: [{ reason: 'unauthorized' }] })
  await harness.becomes('refused-', 'completed')
  await until(ready, ({ pauses }) => pauses.length === 0)
})

test('if the ledger’s disk is full, status says that the daemon has no heartbeat, and it goes on afterwards', async () => {
  const { pool } = harness
  await pool.query(`create function disk_full() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$`)
  await pool.query(`create trigger disk_full before update on outboxd.instance for each row
    when (current_setting('application_name') = 'outboxd heartbeat') execute function disk_full()`)
  await pool.query(`update outboxd.instance set beat_at = beat_at - interval '1 min'`)
  const printed = await said()
  expect(printed).toMatch(/^A daemon is connected, but has had no heartbeat for .*, so nothing is sent\. .*full disk/)
  expect(printed).not.toContain('outboxd run')
  await pool.query('drop function disk_full cascade')
  await until(said, (text) => text.startsWith('All is well'))
})

test('if the disk is full and only heartbeats get through, status says so, and nothing any more once it is over', async () => {
  const { pool } = harness
  await pool.query(`create function disk_full() returns trigger language plpgsql as $$
    begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
    do $$
      declare name text;
      begin
        for name in select format('outboxd.%I', relname) from pg_class
          where relnamespace = 'outboxd'::regnamespace and relkind = 'r' and relname <> 'instance'
        loop
          execute format('create trigger disk_full before insert on %s for each row execute function disk_full()', name);
        end loop;
      end $$`)
  const beats = async () => (await pool.query(`select beats from outboxd.instance`)).rows[0].beats
  await harness.insert('no-room-')
  const printed = await until(said, (text) => text.includes('53100'))
  expect(printed).toMatch(/^A part of the daemon keeps failing/)
  const beatsBefore = await beats()
  await until(beats, (now) => now !== beatsBefore)
  expect(await harness.outcome('no-room-')).toMatchObject({ state: null, posts: [] })
  expect(await said()).toContain('No space left on device (53100)')
  await pool.query('drop function disk_full cascade')
  await harness.becomes('no-room-', 'completed')
  await until(said, (text) => text.startsWith('All is well'))
})

test('after a daemon has stopped, status says at once that no daemon runs', async () => {
  await daemon.stop()
  const printed = await said()
  expect(printed).toMatch(/^No daemon is running, so nothing is sent/)
  expect(printed).toMatch(/instances +none running/)
})
