import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { startEmbeddedPostgres } from '../../../src/demo/embeddedPostgres.ts'
import { migrateOutbox, migrateState } from '../../../src/store/migrate.ts'
import { until } from '../../support/until.ts'
import { type Daemon, type Rig, setup, through } from './rig.ts'

/** Postgres breaks under a daemon that lives: it reconnects, loses nothing, sends nothing twice, and is sure of it. */

async function insertMany(rig: Rig, name: string, count: number): Promise<string[]> {
  const markers = Array.from({ length: count }, (_, i) => `${name}-${i}-`)
  for (const marker of markers) await rig.insert(marker)
  return markers
}

const allCompleted = async (rig: Rig, markers: string[]) => {
  const fates = await Promise.all(markers.map((marker) => rig.becomes(marker, 'completed', 'uncertain', 'failed')))
  expect(
    fates.filter(({ state, effects, posts }) => state !== 'completed' || effects !== 1 || posts.length !== 1),
  ).toEqual([])
}

describe('one database behind the proxy', () => {
  let rig: Rig
  let daemon: Daemon
  beforeAll(async () => {
    rig = await setup({ idempotency: 'ignore' })
  })
  afterEach(async () => {
    await rig.postgres.setFault(null)
    await rig.control('DELETE', 'faults')
    await daemon.stop()
  })
  afterAll(() => rig[Symbol.asyncDispose]())

  const start = async (env: Record<string, string> = {}) => {
    daemon = await rig.start({ DATABASE_URL: through(rig.postgres, rig.env.DATABASE_URL ?? ''), ...env })
  }

  test('all backends terminated again and again: every record is completed, none twice', async () => {
    await start()
    await rig.fault({ kind: 'delay', delayMs: 50, endpoint: 'submit' })
    const markers = await insertMany(rig, 'terminated', 40)
    for (const least of [5, 15, 25]) {
      await until(
        () => rig.pool.query(`select from outboxd.submission where state in ('accepted', 'completed')`),
        ({ rowCount }) => (rowCount ?? 0) >= least,
      )
      await rig.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name like 'outboxd%'`,
      )
    }
    await allCompleted(rig, markers)
  })

  test('the database out of reach with requests on the wire: their answers are kept and written later', async () => {
    await start()
    await rig.fault({ kind: 'delay', delayMs: 400, endpoint: 'submit' })
    const markers = await insertMany(rig, 'away', 4)
    for (const marker of markers)
      await until(
        () => rig.fate(marker),
        ({ posts }) => posts.length === 1,
      )
    await rig.postgres.setFault({ kind: 'refuse' })
    await until(
      async () => ((await rig.control('GET', 'transactions')) as { rows: unknown[] }).rows.length,
      (n) => n >= 4,
    )
    await rig.postgres.setFault(null)
    await allCompleted(rig, markers)
  })

  // The trigger makes one COMMIT last long enough to cut its answer off.
  test.each([
    { name: 'capture', event: 'insert', when: `new.state = 'queued'` },
    { name: 'claim', event: 'update', when: `new.state = 'sending'` },
    { name: 'accept', event: 'update', when: `new.state = 'accepted' and old.state = 'sending'` },
    { name: 'complete', event: 'update', when: `new.state = 'completed'` },
  ])('the answer to the COMMIT of $name is lost: done once all the same', async ({ name, event, when }) => {
    await rig.pool.query(`
      create sequence once_${name};
      create function linger_${name}() returns trigger language plpgsql as $$
      begin
        if nextval('once_${name}') = 1 then perform pg_sleep(0.6); end if;
        return null;
      end $$;
      create constraint trigger linger_${name} after ${event} on outboxd.submission deferrable initially deferred
        for each row when (${when}) execute function linger_${name}()`)
    onTestFinished(async () => {
      await rig.pool.query(`drop trigger linger_${name} on outboxd.submission`)
    })
    await start({ STATE_DATABASE_URL: through(rig.postgres, rig.env.DATABASE_URL ?? '') })
    await rig.insert(`lost-${name}-`)
    const committing = () =>
      rig.pool.query(
        `select from pg_stat_activity where datname = current_database() and query = 'commit' and state = 'active'
           and application_name = 'outboxd'`,
      )
    await until(committing, ({ rowCount }) => rowCount === 1)
    await rig.postgres.setFault({ kind: 'cut-after-request' }, { times: 100 })
    await until(committing, ({ rowCount }) => rowCount === 0)
    await rig.postgres.setFault(null)
    const fate = await rig.becomes(`lost-${name}-`, 'completed', 'uncertain', 'failed')
    expect(fate).toMatchObject({ state: 'completed', posts: [200], effects: 1 })
    expect(fate.steps.filter((step) => step === 'accepted completed')).toHaveLength(1)
    expect(fate.steps.filter((step) => step === 'sending accepted')).toHaveLength(1)
    if (name === 'claim') expect(fate.causes).toContain('never sent: the claim was lost')
  })

  test('the outbox out of reach while the ledger is there: the journey goes on, the row is told later', async () => {
    await start({ STATE_DATABASE_URL: rig.env.DATABASE_URL ?? '' })
    await rig.fault({ kind: 'delay', delayMs: 500, endpoint: 'submit' })
    await rig.insert('outbox-away-')
    await until(
      () => rig.fate('outbox-away-'),
      ({ posts }) => posts.length === 1,
    )
    await rig.postgres.setFault({ kind: 'refuse' })
    await until(
      () => rig.fate('outbox-away-'),
      ({ state }) => state === 'completed',
    )
    expect((await rig.fate('outbox-away-')).status).not.toBe('completed')
    await rig.postgres.setFault(null)
    await rig.becomes('outbox-away-', 'completed')
  })

  test('the ledger out of reach while the outbox is there: the row waits as new', async () => {
    const url = rig.env.DATABASE_URL ?? ''
    daemon = await rig.start({ DATABASE_URL: url, STATE_DATABASE_URL: through(rig.postgres, url) })
    await rig.postgres.setFault({ kind: 'refuse' })
    await rig.insert('ledger-away-')
    // Were it to be captured, that would be within a sweep.
    await until(
      () =>
        rig.pool.query(
          `select from pg_stat_activity where datname = current_database() and application_name = 'outboxd'`,
        ),
      ({ rowCount }) => rowCount === 0,
    )
    expect(await rig.fate('ledger-away-')).toMatchObject({ status: 'new', state: null, posts: [] })
    await rig.postgres.setFault(null)
    expect(await rig.becomes('ledger-away-', 'completed')).toMatchObject({ effects: 1 })
  })

  test('LISTEN on a half-open connection hears nothing: the sweep carries on', { retry: 2 }, async () => {
    await start({ STATE_DATABASE_URL: rig.env.DATABASE_URL ?? '' })
    await rig.insert('heard-')
    await rig.becomes('heard-', 'completed')
    // What passes first is the notice, on the connection that listens.
    await rig.postgres.setFault({ kind: 'half-open' }, { times: 1 })
    await rig.pool.query(`select pg_notify('outboxd_outbox', '')`)
    await rig.postgres.struck()
    await rig.insert('unheard-')
    await rig.becomes('unheard-', 'completed')
  })

  test('every connection of the pool waits for a lock for longer than it may: all goes on when it is free', async () => {
    await start()
    await rig.fault({ kind: 'delay', delayMs: 300, endpoint: 'submit' })
    const markers = await insertMany(rig, 'exhausted', 12)
    await until(
      () => rig.fate(markers[0] ?? ''),
      ({ posts }) => posts.length === 1,
    )
    const client = await rig.pool.connect()
    await client.query('begin; lock table outboxd.submission in access exclusive mode')
    await client.query('select pg_sleep(6)') // a connection is waited for for 5 s
    await client.query('commit')
    client.release()
    await allCompleted(rig, markers)
  })
})

test('an immediate restart of Postgres under 60 records: every one is completed, none twice', async () => {
  const server = await startEmbeddedPostgres({ fsync: 'off' })
  onTestFinished(() => server.stop())
  await migrateState(server.url)
  await migrateOutbox(server.url, 'outbox')
  const rig = await setup({ idempotency: 'ignore' }, server.url)
  onTestFinished(() => rig[Symbol.asyncDispose]())
  await rig.start()
  await rig.fault({ kind: 'delay', delayMs: 80, endpoint: 'submit' })
  const markers = await insertMany(rig, 'restart', 60)
  for (const least of [10, 30]) {
    await until(
      () => rig.pool.query(`select from outboxd.submission where state in ('accepted', 'completed')`),
      ({ rowCount }) => (rowCount ?? 0) >= least,
    )
    await server.restartImmediately()
  }
  await allCompleted(rig, markers)
})
