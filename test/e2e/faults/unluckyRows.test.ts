import { randomBytes } from 'node:crypto'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { command as list } from '../../../src/commands/list.ts'
import { testContext } from '../../support/context.ts'
import type { Daemon } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { readMetric } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** A row that cannot be captured or marked affects only itself, and the others go on. */

const harness = openForFile(() => setup())
let daemon: Daemon
beforeAll(async () => {
  await harness.pool.query('drop index outbox_captured; alter table outbox alter payload type text')
  daemon = await harness.start()
})

const good = { customerId: 'C1', orderDate: '2026-11-21T10:00:00Z', amount: 1, field2: 'x' }

async function insertRow(key: string | null, payload: string): Promise<string> {
  const { rows } = await harness.pool.query<{ id: string }>(
    `insert into outbox (type, key, payload) values ('data', $1, $2) returning id::text`,
    [key, payload],
  )
  return rows[0]?.id ?? ''
}

const statusOf = async (id: string) => {
  const { rows } = await harness.pool.query<{ status: string; error: string | null }>(
    'select status, error from outbox where id = $1',
    [id],
  )
  return rows[0] ?? { status: 'gone', error: null }
}

const ends = (id: string) =>
  until(
    () => statusOf(id),
    (row) => ['completed', 'rejected'].includes(row.status),
  )

/** Does not wait for the outcome to be written back; reports.test.ts tests that. */
const isTakenAndSent = (marker: string) =>
  until(
    () => harness.outcome(marker),
    (outcome) => outcome.status !== 'new' && outcome.state === 'completed',
  )

const skippedNow = () => readMetric(daemon, 'outboxd_problems{kind="row_skipped"}')

test('a key of 6 kB: rejected', async () => {
  await harness.insert('before-long-key')
  const id = await insertRow(randomBytes(3_000).toString('hex'), JSON.stringify(good))
  await harness.insert('after-long-key')
  expect(await ends(id)).toEqual({
    status: 'rejected',
    error: 'the key has 6000 bytes, more than the 2500 that a key may have',
  })
  await harness.becomes('before-long-key', 'completed')
  await harness.becomes('after-long-key', 'completed')
})

test('text that is not JSON, with half an emoji: rejected', async () => {
  const texts = Array.from({ length: 24 }, (_, at) => `{"a": ${'x'.repeat(at)}😀${'y'.repeat(40)}`)
  const ids = await Promise.all(texts.map((text) => insertRow(null, text)))
  await harness.insert('after-emoji')
  for (const id of ids)
    expect(await ends(id)).toEqual({ status: 'rejected', error: expect.stringContaining('not JSON') })
  await harness.becomes('after-emoji', 'completed')
})

test('an ERP trigger refuses a mark: `row_skipped`, and sent once when the mark is possible', async () => {
  await harness.pool.query(`create function refuse() returns trigger language plpgsql as $$
    begin
      if new.payload like '%locked-period%' then raise exception 'the period is closed'; end if;
      return new;
    end $$;
    create trigger refuse before update on outbox for each row execute function refuse()`)
  onTestFinished(async () => void (await harness.pool.query('drop function if exists refuse cascade')))
  await harness.insert('before-trigger')
  const id = await harness.insert('locked-period')
  await harness.insert('after-trigger')
  for (let i = 0; i < 20; i++) await harness.insert(`more-${i}-trigger`)
  for (const marker of ['before-trigger', 'after-trigger', 'more-19-trigger']) await isTakenAndSent(marker)
  await until(skippedNow, (count) => count === 1)
  expect(await harness.outcome('locked-period')).toMatchObject({ status: 'new', state: null, posts: [] })

  const says = await statusSays(harness.env)
  expect(says).not.toContain('All is well')
  expect(says).toContain(`1 row of the outbox`)
  const asked = testContext({ ...harness.env })
  await list.action(asked, {})
  expect(asked.messages()).toContain(`outbox:${id} is skipped`)
  expect(asked.messages()).toContain('P0001')

  await harness.pool.query('drop function refuse cascade')
  await harness.pool.query("update outboxd.problem set retry_at = now() where kind = 'row_skipped'")
  await until(skippedNow, (count) => count === 0)
  expect(await harness.becomes('locked-period', 'completed')).toMatchObject({ effects: 1, posts: [200] })
})

test('a mark is refused at the COMMIT: `row_skipped`, and sent once when the mark is possible', async () => {
  await harness.pool.query(`create function refuse() returns trigger language plpgsql as $$
    begin
      if new.payload like '%late-refusal%' then raise exception 'not at the end of the day'; end if;
      return null;
    end $$;
    create constraint trigger refuse after update on outbox deferrable initially deferred
      for each row execute function refuse()`)
  onTestFinished(async () => void (await harness.pool.query('drop function if exists refuse cascade')))
  await harness.insert('late-refusal')
  await harness.insert('on-the-next-day')
  await isTakenAndSent('on-the-next-day')
  await until(skippedNow, (count) => count === 1)
  expect(await harness.outcome('late-refusal')).toMatchObject({ status: 'new', state: null, posts: [] })

  await harness.pool.query('drop function refuse cascade')
  await harness.pool.query("update outboxd.problem set retry_at = now() where kind = 'row_skipped'")
  expect(await harness.becomes('late-refusal', 'completed')).toMatchObject({ effects: 1, posts: [200] })
})

test('a form locks a row before capture: `row_locked` names the session', async () => {
  const other = await setup({})
  onTestFinished(() => other[Symbol.asyncDispose]())
  await other.insert('in-a-form')
  await other.insert('in-no-form')
  const form = await other.pool.connect()
  form.on('error', () => {}) // the statement that `status` names ends this session
  try {
    const { rows } = await form
      .query('begin; select pg_backend_pid() as pid from outbox where id = 1 for update')
      .then((results) => (results as unknown as { rows: { pid: number }[] }[])[1] ?? { rows: [] })
    const started = await other.start()
    await other.becomes('in-no-form', 'completed')
    const counted = (count: number) =>
      until(
        () => readMetric(started, 'outboxd_problems{kind="row_locked"}'),
        (locked) => locked === count,
      )
    const says = () => statusSays(other.env)
    await until(says, (text) => text.includes(`pid ${rows[0]?.pid}`))
    await counted(1)
    const [, statement = ''] =
      /run `(select pg_terminate_backend\(PID\))` in the ERP’s database\./.exec(await says()) ?? []
    await form.query(`update outbox set payload = '{}' where id = 1`)
    await other.pool.query(statement.replace('PID', String(rows[0]?.pid)))
    await other.becomes('in-a-form', 'completed')
    await counted(0)
    expect(await says()).toMatch(/^All is well/)
  } finally {
    form.release(true)
  }
})
