import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Daemon } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { readMetric } from '../../support/scrape.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

/** An outcome that cannot be written to its row is reported, and the outcomes of other rows are written. */

const harness = openForFile(() => setup())
let daemon: Daemon
beforeAll(async () => {
  daemon = await harness.start()
})

const outboxId = async (marker: string): Promise<string> => {
  const { rows } = await harness.pool.query('select id::text from outbox where payload::text like $1', [`%${marker}"%`])
  return rows[0].id
}
const ledgerSays = (marker: string, state: string) =>
  until(
    () => harness.outcome(marker),
    (outcome) => outcome.state === state,
  )

/** Waits until `outboxd status` prints a message and the metrics count the problem. */
async function told(message: RegExp, kind: string, count: number): Promise<void> {
  await until(
    () => statusSays(harness.env),
    (printed) => message.test(printed),
  )
  await until(
    () => readMetric(daemon, `outboxd_problems{kind="${kind}"}`),
    (told) => told === count,
  )
}

async function othersAreTold(name: string): Promise<void> {
  const markers = Array.from({ length: 5 }, (_, i) => `${name}-other-${i}-`)
  for (const marker of markers) await harness.insert(marker)
  await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))
}

describe('a trigger of the ERP', () => {
  afterEach(() => harness.pool.query('drop function if exists meddle() cascade'))

  const meddle = (id: string, what: string) =>
    harness.pool.query(`
      create or replace function meddle() returns trigger language plpgsql as $$
      begin if old.id = ${id} then ${what}; end if; return new; end $$;
      create or replace trigger meddle before update on outbox for each row execute function meddle()`)

  test('an ERP trigger refuses one outcome: `report_refused`, others are written', async () => {
    await harness.fault({ kind: 'delay', delayMs: 1_000, endpoint: 'status', times: 1 })
    await harness.insert('refused-')
    await harness.becomes('refused-', 'accepted')
    await meddle(await outboxId('refused-'), `raise exception 'period is closed'`)
    await ledgerSays('refused-', 'completed')
    await othersAreTold('refused')
    await told(/refuses the outcome of 1 row/, 'report_refused', 1)
    const { rows } = await harness.pool.query(
      `select subject, detail from outboxd.problem where kind = 'report_refused'`,
    )
    expect(rows).toEqual([{ subject: await outboxId('refused-'), detail: expect.stringContaining('P0001') }])
    await harness.pool.query('drop trigger meddle on outbox')
    await harness.becomes('refused-', 'completed')
    await told(/All is well/, 'report_refused', 0)
  })

  test('an ERP trigger ignores one outcome: `mark_ineffective`, others are written', async () => {
    await harness.fault({ kind: 'delay', delayMs: 1_000, endpoint: 'status', times: 1 })
    await harness.insert('ignored-')
    await harness.becomes('ignored-', 'accepted')
    await meddle(await outboxId('ignored-'), 'return null')
    await ledgerSays('ignored-', 'completed')
    await othersAreTold('ignored')
    await told(/ignores what the daemon writes to 1 row/, 'mark_ineffective', 1)
    await harness.pool.query('drop trigger meddle on outbox')
    await harness.becomes('ignored-', 'completed')
    await told(/All is well/, 'mark_ineffective', 0)
  })

  test('a row whose mark a trigger ignores is sent when the table takes the mark, and the rows behind it go on', async () => {
    await harness.pool.query(`
      create or replace function meddle() returns trigger language plpgsql as $$
      begin if old.payload::text like '%never-marked-%' then return null; end if; return new; end $$;
      create or replace trigger meddle before update on outbox for each row execute function meddle()`)
    await harness.insert('never-marked-')
    await othersAreTold('marked')
    await told(/The daemon skips 1 row/, 'row_skipped', 1)
    expect(await harness.outcome('never-marked-')).toMatchObject({ status: 'new', state: null, posts: [] })
    await harness.pool.query('drop trigger meddle on outbox')
    await harness.pool.query("update outboxd.problem set retry_at = now() where kind = 'row_skipped'")
    expect(await harness.becomes('never-marked-', 'completed')).toMatchObject({ effects: 1, posts: [200] })
    await told(/All is well/, 'row_skipped', 0)
  })
})

test('an open form locks a row: `report_locked`, and its outcome is written when the form is closed', async () => {
  await harness.fault({ kind: 'delay', delayMs: 1_000, endpoint: 'status', times: 1 })
  await harness.insert('locked-')
  await harness.becomes('locked-', 'accepted')
  const form = await harness.pool.connect()
  try {
    await form.query('begin')
    await form.query('select from outbox where id = $1 for update', [await outboxId('locked-')])
    await ledgerSays('locked-', 'completed')
    await othersAreTold('locked')
    await told(/waits for a lock/, 'report_locked', 1)
    await form.query('rollback')
    await harness.becomes('locked-', 'completed')
    await told(/All is well/, 'report_locked', 0)
  } finally {
    form.release()
  }
})

test('if writing back fails for all rows, no row is blamed, and `/readyz` names the loop', async () => {
  await harness.pool.query(`create function closed() returns trigger language plpgsql as $$ begin raise exception 'closed'; end $$;
    create trigger closed before update on outbox for each statement execute function closed()`)
  await harness.pool.query(`update outboxd.submission set report_due = true where state = 'completed'`)
  const other = await harness.start()
  const ready = async () => (await fetch(`http://127.0.0.1:${other.port}/readyz`)).text()
  await until(ready, (message) => message.includes('report') && !message.includes('capture'))
  await harness.pool.query('drop trigger closed on outbox')
  await until(ready, (message) => !message.includes('report'))
  // The next heartbeat clears the problem. Until then it names the loop, and no row.
  const problems = async () => (await harness.pool.query('select kind, subject from outboxd.problem')).rows
  expect((await problems()).filter(({ kind }) => kind !== 'loop_failing')).toEqual([])
  await until(problems, (those) => those.length === 0)
})
