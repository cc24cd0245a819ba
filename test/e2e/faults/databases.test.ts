import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Daemon } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { migrateAll, startPostgres } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'
import { type Harness, setup, through } from './harness.ts'

/** Postgres fails while a daemon runs. The daemon reconnects, loses no record and sends none twice. */

async function insertMany(harness: Harness, name: string, count: number): Promise<string[]> {
  const markers = Array.from({ length: count }, (_, i) => `${name}-${i}-`)
  for (const marker of markers) await harness.insert(marker)
  return markers
}

const allCompleted = async (harness: Harness, markers: string[]) => {
  const outcomes = await Promise.all(
    markers.map((marker) => harness.becomes(marker, 'completed', 'uncertain', 'failed')),
  )
  expect(
    outcomes.filter(({ state, effects, posts }) => state !== 'completed' || effects !== 1 || posts.length !== 1),
  ).toEqual([])
}

describe('one database behind the proxy', () => {
  const harness = openForFile(() => setup({ idempotency: 'ignore' }))
  let daemon: Daemon
  afterEach(async () => {
    await harness.postgres.setFault(null)
    await harness.control('DELETE', 'faults')
    await daemon.stop()
  })

  const start = async (env: Record<string, string> = {}) => {
    daemon = await harness.start({ DATABASE_URL: through(harness.postgres, harness.env.DATABASE_URL ?? ''), ...env })
  }

  test('all Postgres sessions terminated, again and again: completed, once', async () => {
    await start()
    await harness.fault({ kind: 'delay', delayMs: 50, endpoint: 'submit' })
    const markers = await insertMany(harness, 'terminated', 40)
    for (const least of [5, 15, 25]) {
      await until(
        () => harness.pool.query(`select from outboxd.submission where state in ('accepted', 'completed')`),
        ({ rowCount }) => (rowCount ?? 0) >= least,
      )
      await harness.pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name like 'outboxd%'`,
      )
    }
    await allCompleted(harness, markers)
  })

  test('the database is away with requests on the wire: answers written later', async () => {
    await start()
    await harness.fault({ kind: 'delay', delayMs: 400, endpoint: 'submit' })
    const markers = await insertMany(harness, 'away', 4)
    for (const marker of markers)
      await until(
        () => harness.outcome(marker),
        ({ posts }) => posts.length === 1,
      )
    await harness.postgres.setFault({ kind: 'refuse' })
    await until(
      async () => ((await harness.control('GET', 'transactions')) as { rows: unknown[] }).rows.length,
      (n) => n >= 4,
    )
    await harness.postgres.setFault(null)
    await allCompleted(harness, markers)
  })

  // The trigger makes one COMMIT last until the test cuts off its answer.
  test.each([
    { name: 'capture', event: 'insert', when: `new.state = 'queued'` },
    { name: 'claim', event: 'update', when: `new.state = 'sending'` },
    { name: 'accept', event: 'update', when: `new.state = 'accepted' and old.state = 'sending'` },
    { name: 'complete', event: 'update', when: `new.state = 'completed'` },
  ])('the answer to any COMMIT is lost ($name): completed, once', async ({ name, event, when }) => {
    onTestFinished(async () => {
      await harness.pool.query(`drop function linger_${name} cascade; drop sequence once_${name}, released_${name}`)
    })
    await harness.pool.query(`
      create sequence once_${name};
      create sequence released_${name};
      create function linger_${name}() returns trigger language plpgsql as $$
      begin
        if nextval('public.once_${name}') > 1 then return null; end if;
        loop
          perform pg_sleep(0.1);
          exit when (select is_called from public.released_${name});
        end loop;
        return null;
      end $$;
      create constraint trigger linger_${name} after ${event} on outboxd.submission deferrable initially deferred
        for each row when (${when}) execute function linger_${name}()`)
    await start({ DATABASE_URL: through(harness.postgres, harness.env.DATABASE_URL ?? '') })
    await harness.insert(`lost-${name}-`)
    const { rows } = await until(
      () =>
        harness.pool.query<{ pid: number }>(
          `select pid from pg_stat_activity where datname = current_database() and query = 'commit'
             and wait_event = 'PgSleep' and application_name in ('outboxd', 'outboxd outbox')`,
        ),
      ({ rowCount }) => rowCount === 1,
    )
    await harness.postgres.setFault({ kind: 'cut-after-request' }, { times: 100 })
    await harness.pool.query(`select nextval('released_${name}')`)
    await until(
      () =>
        harness.pool.query(`select from pg_stat_activity where pid = $1 and query = 'commit' and state = 'active'`, [
          rows[0]?.pid,
        ]),
      ({ rowCount }) => rowCount === 0,
    )
    await harness.postgres.setFault(null)
    const outcome = await harness.becomes(`lost-${name}-`, 'completed', 'uncertain', 'failed')
    expect(outcome).toMatchObject({ state: 'completed', posts: [200], effects: 1 })
    expect(outcome.steps.filter((step) => step === 'accepted completed')).toHaveLength(1)
    expect(outcome.steps.filter((step) => step === 'sending accepted')).toHaveLength(1)
    if (name === 'claim') expect(outcome.causes).toContain('never sent: the claim was lost')
  })

  test("only the ledger's database is away: the row waits as new", async () => {
    const url = harness.env.DATABASE_URL ?? ''
    daemon = await harness.start({ DATABASE_URL: through(harness.postgres, url) })
    await harness.postgres.setFault({ kind: 'refuse' })
    await harness.insert('ledger-away-')
    // A capture would happen within one sweep.
    await until(
      () =>
        harness.pool.query(
          `select from pg_stat_activity where datname = current_database() and application_name = 'outboxd'`,
        ),
      ({ rowCount }) => rowCount === 0,
    )
    expect(await harness.outcome('ledger-away-')).toMatchObject({ status: 'new', state: null, posts: [] })
    await harness.postgres.setFault(null)
    expect(await harness.becomes('ledger-away-', 'completed')).toMatchObject({ effects: 1 })
  })

  test('LISTEN on a half-open connection: the sweep finds the rows', { retry: 2 }, async () => {
    await start()
    await harness.insert('heard-')
    await harness.becomes('heard-', 'completed')
    // The next data through the proxy is the notification, on the listening connection.
    await harness.postgres.setFault({ kind: 'half-open' }, { times: 1 })
    await harness.pool.query(`select pg_notify('outboxd_outbox', '')`)
    await harness.postgres.struck()
    await harness.insert('unheard-')
    await harness.becomes('unheard-', 'completed')
  })

  test('every pooled connection is blocked: goes on when free', async () => {
    await start()
    await harness.fault({ kind: 'delay', delayMs: 300, endpoint: 'submit' })
    const markers = await insertMany(harness, 'exhausted', 12)
    await until(
      () => harness.outcome(markers[0] ?? ''),
      ({ posts }) => posts.length === 1,
    )
    const client = await harness.pool.connect()
    await client.query('begin; lock table outboxd.submission in access exclusive mode')
    await client.query('select pg_sleep(6)') // the pool waits up to 5 s for a connection
    await client.query('commit')
    client.release()
    await allCompleted(harness, markers)
  })
})

test('Postgres crashes and restarts under 60 records: completed, once', async () => {
  const server = await startPostgres({ fsync: 'off' })
  onTestFinished(() => server.stop())
  await migrateAll(server.url)
  const harness = await setup({ idempotency: 'ignore' }, server.url)
  onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.start()
  await harness.fault({ kind: 'delay', delayMs: 80, endpoint: 'submit' })
  const markers = await insertMany(harness, 'restart', 60)
  for (const least of [10, 30]) {
    await until(
      () => harness.pool.query(`select from outboxd.submission where state in ('accepted', 'completed')`),
      ({ rowCount }) => (rowCount ?? 0) >= least,
    )
    await server.restartImmediately()
  }
  await allCompleted(harness, markers)
})
