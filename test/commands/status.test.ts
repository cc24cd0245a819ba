import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { command as status } from '../../src/commands/status.ts'
import { countRequestsOfOtherClient } from '../../src/ledger/budget.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { openHeartbeatPool } from '../../src/ledger/ledgerSessions.ts'
import { clearProblems, raiseProblems, replaceProblems } from '../../src/ledger/problems.ts'
import { findStuckSubmissionProblems } from '../../src/ledger/transactions.ts'
import { explainError } from '../../src/operations/explainError.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { sessionEndCost } from '../../src/postgres/locks.ts'
import { daemonSessionNames } from '../../src/postgres/sessionSettings.ts'
import { openBreaker } from '../support/breaker.ts'
import { claim, setKeyOnFailure, setLimit, setSettings } from '../support/ledger.ts'
import { startProgram } from '../support/program.ts'
import { readOnly } from '../support/readOnly.ts'
import { runStatus } from '../support/statusSays.ts'
import { until } from '../support/until.ts'
import { failedE003, openFixtureForFile, payloadOf, uncertain } from './fixture.ts'

const fixture = openFixtureForFile()

async function run(json = false, env: Record<string, string> = {}) {
  const { code, context } = await runStatus(() => fixture.context(null, env), { json })
  return { code, printed: context.printed(), messages: context.messages() }
}

const alive = () => writeHeartbeat(fixture.ledger.pool, { id: randomUUID(), version: '1', host: 'erp-1', settings: {} })

test('all is well with a daemon and nothing to do, in at most twelve lines', async () => {
  await alive()
  const { code, printed } = await run()
  expect(code).toBe(0)
  expect(printed).toMatch(/^All is well: everything is sent\.\n\n/)
  expect(printed.trimEnd().split('\n').length).toBeLessThanOrEqual(12)
  expect(printed).toMatch(/budget +100 of 100 requests free\n/)
  expect(printed).toMatch(/instance +\w{8} on erp-1, version 1/)
})

test('the installation’s name is that of the ledger, whatever the shell says', async () => {
  await setSettings(fixture.ledger.pool, { INSTALLATION_NAME: 'Test 2' })
  const { printed } = await run(false, { INSTALLATION_NAME: 'Production' })
  expect(printed).toMatch(/^installation {4}Test 2$/m)
})

test('--exit-code is 0 only if all is well; without it the exit code says only whether status could look', async () => {
  const codes = async () => {
    const { code } = await runStatus(() => fixture.context(null), { exitCode: true })
    return { code, without: (await run()).code }
  }
  expect(await codes()).toEqual({ code: 1, without: 0 })
  await alive()
  expect(await codes()).toEqual({ code: 0, without: 0 })
  await fixture.end(failedE003)
  expect(await codes()).toEqual({ code: 1, without: 0 })
})

test('on a terminal the verdict is green, yellow if a person is needed, red if nothing is sent', async () => {
  const verdict = async () => {
    const context = fixture.context(null)
    Object.assign(context.stdout, { isTTY: true, columns: 200, getColorDepth: () => 8 })
    await status.action(context, {})
    return context.printed().split('\n')[0]?.replaceAll('\u001b', 'ESC')
  }
  expect(await verdict()).toMatch(/^ESC\[31mNo daemon is running.*ESC\[39m$/)
  await alive()
  expect(await verdict()).toBe('ESC[32mAll is well: everything is sent.ESC[39m')
  await fixture.end(failedE003)
  expect(await verdict()).toMatch(/^ESC\[33m1 record needs attention/)
})

test('without a daemon the first line says so, and the other messages follow', async () => {
  await fixture.end(failedE003)
  const { printed } = await run()
  const [first, second] = printed.split('\n')
  expect(first).toContain('No daemon is running')
  expect(second).toBe('Also: 1 record needs attention (1 failed). `outboxd list` shows them.')
  expect(printed).toMatch(/needs attention +0 uncertain, 1 failed, 0 rejected/)
})

test('an instance that is silent for 5 s is not alive', async () => {
  await alive()
  await fixture.ledger.pool.query(`update outboxd.instance set beat_at = now() - interval '6 s'`)
  expect((await run()).printed).toMatch(/instances +none running; last heartbeat .* \(\d s ago\)/)
})

test('the pause after a restore is shown as lasting until recover', async () => {
  await fixture.ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('history', 'it was restored')`)
  expect((await run()).printed).toMatch(/paused +history since .*, until `outboxd recover`: it was restored/)
})

test('a pause is shown with its reason, beginning, end and detail', async () => {
  await alive()
  await openBreaker(fixture.ledger.pool, { agoMs: 120_000, forMs: 180_400, detail: 'E003 it says' })
  const { printed } = await run()
  expect(printed).toMatch(/^Nothing is sent: paused \(unavailable\) since .* \(2 min( \d s)? ago\)\. /)
  expect(printed).toMatch(
    /paused +unavailable since .*\(2 min( \d s)? ago\), until .*\(in (3 min|2 min 5\d s)\): E003 it says/,
  )
})

test('the backlog counts waiting rows and captured records, and the oldest by the time of its row', async () => {
  await alive()
  await fixture.row(payloadOf())
  await fixture.ledger.pool.query(`update outbox set created_at = now() - interval '10 min'`)
  await fixture.end({ state: 'queued' })
  const { printed } = await run(true)
  const read = JSON.parse(printed)
  expect(read).toMatchObject({
    well: true,
    submissions: { queued: 1, failed: 0 },
    outboxWaiting: 1,
    // Two records, a request and a poll each, at 100 a minute.
    backlog: { records: 2, estimatedSeconds: 2, pollsPerRecord: 1 },
    budget: { capacity: 100, available: 100, nextFree: null },
    pauses: [],
    instances: [{ host: 'erp-1' }],
  })
  expect(Date.now() - Date.parse(read.oldestUnsent)).toBeGreaterThan(599_000)
})

test('a record without an answer is on the wire, not to be sent', async () => {
  await alive()
  await fixture.ledger.capture([{}])
  await claim(fixture.ledger.dispatch(), { submissions: 1 })
  const { printed } = await run()
  expect(printed).toMatch(/^All is well: 1 on the wire\.\n/)
  expect(printed).toMatch(/to send +0 in the outbox, 0 captured\nat the service +1 on the wire, 0 being processed\n/)
})

test('the backlog does not count records held behind one that needs attention', async () => {
  await fixture.end(uncertain, { key: 'customer 1' })
  await fixture.ledger.capture([
    { key: 'customer 1' },
    { key: 'customer 1' },
    { key: 'customer 2' },
    { key: 'customer 2' },
  ])
  const { printed } = await run()
  expect(printed).toMatch(/backlog +sent in about .*; 2 held behind records that need attention\n/)
  expect(JSON.parse((await run(true)).printed)).toMatchObject({ backlog: { records: 2 }, heldForPerson: 2 })
})

test('the backlog gets no end time while a problem or a record that needs attention may hold up waiting rows', async () => {
  const { pool } = fixture.ledger
  await alive()
  await fixture.row(payloadOf())
  const read = async () => {
    const { throughAt } = JSON.parse((await run(true)).printed).backlog
    const isCut = /backlog +sent in about \S+ \S+, except rows of the outbox that wait for /.test((await run()).printed)
    return { hasEnd: throughAt !== null, isCut }
  }
  const held = { hasEnd: false, isCut: true }
  const free = { hasEnd: true, isCut: false }
  expect(await read()).toEqual(free)
  for (const kind of ['row_skipped', 'row_locked', 'row_conflict', 'source_failing'] as const) {
    await raiseProblems(pool, [{ kind, subject: '7', detail: 'it fails', retryInMs: 60_000 }])
    expect(await read(), kind).toEqual(held)
    await clearProblems(pool, kind, null)
  }
  await fixture.end(uncertain, { key: 'customer 1' })
  await fixture.ledger.capture([{ key: 'customer 1' }])
  expect(await read()).toEqual(held)
  await pool.query(`update outbox set status = 'queued'`)
  await fixture.end({ state: 'queued' })
  expect(await read()).toEqual(free)
})

test('a failed record holds back its key only if the ledger says KEY_ON_FAILURE=block, whatever the shell says', async () => {
  await fixture.end(failedE003, { key: 'customer 1' })
  await fixture.ledger.capture([{ key: 'customer 1' }])
  const read = async (env = {}) => JSON.parse((await run(true, env)).printed)
  expect(await read({ KEY_ON_FAILURE: 'block' })).toMatchObject({ backlog: { records: 1 }, heldForPerson: 0 })
  await fixture.ledger.pool.query(`update outboxd.submission set held = true where state = 'queued'`)
  await setKeyOnFailure(fixture.ledger.pool, 'block')
  expect(await read()).toMatchObject({ backlog: { records: 0 }, heldForPerson: 1 })
})

test('the estimate ends no earlier than the last record is due', async () => {
  await fixture.end({ state: 'queued' })
  await fixture.ledger.pool.query(`update outboxd.submission set due_at = now() + interval '10 min'`)
  const { estimatedSeconds } = JSON.parse((await run(true)).printed).backlog
  expect(estimatedSeconds).toBeLessThanOrEqual(600)
  expect(estimatedSeconds).toBeGreaterThan(590)
})

test('the estimate uses the mean number of polls of completed records', async () => {
  await fixture.end({ state: 'completed', polls: 3, doneMs: 10 })
  await fixture.end({ state: 'completed', polls: 5, doneMs: 10 })
  expect(JSON.parse((await run(true)).printed).backlog.pollsPerRecord).toBe(4)
})

test('another client that spends from the budget is named, and the backlog takes as long as with the rest', async () => {
  const { pool } = fixture.ledger
  await alive()
  await fixture.ledger.capture(Array.from({ length: 25 }, () => ({})))
  const seconds = async () => JSON.parse((await run(true)).printed).backlog.estimatedSeconds
  const left = (remaining: number) =>
    inTransaction(pool, (db) => countRequestsOfOtherClient(db, randomUUID(), { remaining, sinceRequestMs: 0 }))
  expect(await seconds()).toBe(30)
  expect(await left(25)).toBe(75)
  expect(await seconds()).toBe(120)
  const { printed } = await run()
  expect(printed).toMatch(/^Another client spends from the budget, so outboxd leaves 75 of 100 requests to it\./)
  expect(printed).toMatch(/budget +25 of 100 requests free, 75 left to another client/)
  await left(0)
  expect((await run()).printed).toMatch(/backlog .* after the other client leaves requests \(/)
})

test('before a daemon has run, status does not know the budget, whatever the shell says', async () => {
  await fixture.ledger.reset()
  expect((await run(false, { RATE_LIMIT_REQUESTS: '70' })).printed).toMatch(
    /budget +unknown until the first daemon runs/,
  )
})

test('if the outbox cannot be read, status still shows the ledger and exits with 1', async () => {
  await alive()
  const { code, printed, messages } = await run(false, { OUTBOX_TABLE: 'nowhere' })
  expect(code).toBe(1)
  expect(printed).toMatch(/^The outbox cannot be read\. `outboxd check` says why/)
  expect(printed).toMatch(/to send +unknown in the outbox, 0 captured/)
  expect(messages).toContain('nowhere')
})

test('if the database is read-only, status says so', async () => {
  await using _ = await readOnly(fixture.ledger.pool)
  const { printed } = await run()
  expect(printed).toMatch(/^The database is read-only, so the daemons send nothing\. .* disk/)
  expect(printed).not.toContain('outboxd run')
  expect(printed).toMatch(/instances +unknown while the database is read-only/)
  const json = JSON.parse((await run(true)).printed)
  expect(json).toMatchObject({ well: false, readOnly: 'setting' })
})

test('status counts outcomes that are not written back, and after five minutes not all is well', async () => {
  await alive()
  expect((await run()).printed).not.toContain('to write back')
  await fixture.end({ state: 'completed', polls: 1, doneMs: 10 })
  const refused = await fixture.end({ state: 'completed', polls: 1, doneMs: 10 })
  const { pool } = fixture.ledger
  await pool.query('update outboxd.submission set report_due = true')
  await pool.query('update outboxd.submission set report_put_off = revision where id = $1', [refused])
  expect((await run()).printed).toMatch(/^All is well[\s\S]*\nto write back +2 outcomes, the oldest from /)
  await backdateEvents(refused, '10 min')
  const { printed } = await run()
  expect(printed).toMatch(
    /^2 outcomes are not written back to the outbox, the oldest for 10 min\. .*`outboxd check` tries one row/,
  )
  const { reportsDue, well } = JSON.parse((await run(true)).printed)
  expect({ well, number: reportsDue.number }).toEqual({ well: false, number: 2 })
  expect(Date.now() - Date.parse(reportsDue.oldest)).toBeGreaterThan(599_000)
})

/** Moves events into the past. The log is append-only, so its trigger is disabled meanwhile. */
async function backdateEvents(submissionId: string, by: string): Promise<void> {
  const { pool } = fixture.ledger
  await pool.query('alter table outboxd.submission_event disable trigger append_only')
  await pool.query(`update outboxd.submission_event set at = at - $2::interval where submission_id = $1`, [
    submissionId,
    by,
  ])
  await pool.query('alter table outboxd.submission_event enable trigger append_only')
}

test('a record was due, a request free, a daemon alive, and yet nothing was claimed for a minute: not well', async () => {
  const { pool } = fixture.ledger
  await alive()
  const id = await fixture.end({ state: 'queued' })
  const age = async (by: string) => {
    await backdateEvents(id, by)
    await pool.query('update outboxd.instance set unbroken_since = unbroken_since - $1::interval', [by])
    await pool.query('update outboxd.submission set due_at = due_at - $1::interval', [by])
  }
  await age('50 s')
  expect((await run()).printed).toMatch(/^All is well: 1 record to send/)
  await age('50 s')
  const stalled =
    /^Nothing is sent: captured records have been due for up to 1 min 4\d s and requests are free, but no daemon has claimed a record for 1 min 4\d s\. /
  expect((await run()).printed).toMatch(stalled)
  await setLimit(pool, 100, 86_400_000) // so 29 min between claims are usual
  expect((await run()).printed).toMatch(/^All is well/)
  await setLimit(pool, 100)
  await pool.query(
    `insert into outboxd.request (instance_id, purpose, over_at)
     select gen_random_uuid(), 'poll', now() - interval '65 s' from generate_series(1, 100)`,
  )
  expect((await run()).printed).toMatch(/^All is well/)
  await pool.query(
    `update outboxd.request set over_at = over_at - interval '20 s' where id = (select min(id) from outboxd.request)`,
  )
  expect((await run()).printed).toMatch(stalled)
  await pool.query(
    `insert into outboxd.pause (reason, until, detail) values ('operator', now() - interval '1 s', 'it has just ended')`,
  )
  expect((await run()).printed).toMatch(/^All is well/)
  await pool.query('truncate outboxd.pause')
  await pool.query(`insert into outboxd.operator_act (act, who) values ('resume', 'operator test')`)
  expect((await run()).printed).toMatch(/^All is well/)
  await pool.query('truncate outboxd.operator_act')
  await fixture.ledger.capture([{}])
  expect((await run()).printed).toMatch(stalled)
})

test('a poll was due, and yet no answer was written for two minutes: not well', async () => {
  const { pool } = fixture.ledger
  await alive()
  await fixture.end({ state: 'accepted', transactionId: 'tx-1', pollInMs: 1 })
  await pool.query(`update outboxd.instance set unbroken_since = now() - interval '5 min'`)
  await pool.query(`update outboxd.poll set due_at = now() - interval '150 s'`)
  const silent =
    /^No outcome is recorded: polls have been due for up to 2 min 3\d s and requests are free, but no daemon has written an answer to the ledger for 5 min/
  expect((await run()).printed).toMatch(silent)
  await pool.query(
    `insert into outboxd.request_count values (date_trunc('minute', now()), 'status', gen_random_uuid(), 1, 0, 1, 0)`,
  )
  expect((await run()).printed).toMatch(/^All is well: 1 being processed/)
  await pool.query(`update outboxd.request_count set minute = minute - interval '10 min'`)
  expect((await run()).printed).toMatch(silent)
})

test('the end time of the backlog counts from when the next request is free', async () => {
  await alive()
  await fixture.end({ state: 'queued' })
  const { pool } = fixture.ledger
  await setLimit(pool, 100, 600_000)
  await pool.query(`update outboxd.ledger set spent_at = now()`)
  await pool.query(
    `insert into outboxd.request (instance_id, purpose, over_at) select gen_random_uuid(), 'token', now() from generate_series(1, 100)`,
  )
  const { at, backlog } = JSON.parse((await run(true)).printed)
  expect(Date.parse(backlog.throughAt) - Date.parse(at)).toBeGreaterThan(590_000)
})

test('the backlog has an end time that includes pauses, but none if a pause has no end', async () => {
  await alive()
  await fixture.end({ state: 'queued' })
  const { pool } = fixture.ledger
  await pool.query(`update outboxd.submission set due_at = now() + interval '20 min'`)
  const throughInMs = async () => {
    const { at, backlog } = JSON.parse((await run(true)).printed)
    return backlog.throughAt === null ? null : Math.round((Date.parse(backlog.throughAt) - Date.parse(at)) / 60_000)
  }
  expect((await run()).printed).toMatch(/backlog +sent in about 20 min, at (\d{4}-\d\d-\d\d )?\d\d:\d\dZ \(estimated/)
  expect(await throughInMs()).toBe(20)
  await openBreaker(pool, { forMs: 300_000 })
  expect(await throughInMs()).toBe(25)
  await pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'maintenance')`)
  expect(await throughInMs()).toBeNull()
  expect((await run()).printed).toMatch(/backlog +sent in about 20 min after the pause \(estimated/)
})

test('if a daemon only listens and never had a heartbeat, status says that it is connected', async () => {
  const listener = new pg.Client({ connectionString: fixture.ledger.url, application_name: daemonSessionNames.listen })
  await listener.connect()
  onTestFinished(() => listener.end())
  expect((await run()).printed).toMatch(
    /^A daemon is connected, but has had no heartbeat yet, so nothing is sent\. .*missing permission/,
  )
})

test('if a connected daemon has no heartbeat, status names the session that it waits for', async () => {
  const { pool, url } = fixture.ledger
  const instance = { id: randomUUID(), version: '1', host: 'erp-1', settings: {} }
  const heartbeats = openHeartbeatPool(url, () => {})
  onTestFinished(() => heartbeats.end())
  await writeHeartbeat(heartbeats, instance)
  await pool.query(`update outboxd.instance set beat_at = now() - interval '90 s'`)
  const { printed } = await run()
  expect(printed).toMatch(
    /^A daemon is connected, but has had no heartbeat for 1 min 3\d s, so nothing is sent\. .*full disk/,
  )
  expect(printed).not.toContain('outboxd run')
  expect(printed).toMatch(/instances +one connected, without a heartbeat; last heartbeat /)
  expect(JSON.parse((await run(true)).printed)).toMatchObject({ well: false, daemonConnected: true, instances: [] })

  const session = await pool.connect()
  onTestFinished(() => session.release(true))
  const { rows } = await session.query('select pg_backend_pid() as pid')
  await session.query(`begin; lock table outboxd.instance in share mode`)
  const beat = writeHeartbeat(heartbeats, instance)
  const held = await until(run, ({ printed }) => printed.includes('It waits for'))
  expect(held.printed).toContain(`It waits for pid ${rows[0].pid} (`)
  expect(held.printed).toContain('last statement: ')
  expect(held.printed).toContain(`select pg_terminate_backend(${rows[0].pid})`)
  await session.query('rollback')
  await beat
  expect((await run()).printed).toMatch(/^All is well/)
})

test('if a table of the ledger is locked, status names the session, and works after its end', async () => {
  await alive()
  const { pool } = fixture.ledger
  const session = await pool.connect()
  session.on('error', () => {}) // it is ended below
  onTestFinished(() => session.release(true))
  const { rows } = await session.query('select pg_backend_pid() as pid')
  await session.query(`begin; lock table outboxd.instance in access exclusive mode`)
  const error = await run().catch((error: unknown) => error)
  const { message } = explainError(error)
  expect(message).toContain(`a table of the ledger is locked by pid ${rows[0].pid} (`)
  const [, statement = ''] = /run `(.*?)` in the ledger’s database/.exec(message) ?? []
  await pool.query(statement)
  expect((await run()).code).toBe(0)
})

test('if a loop of the daemon fails, status says so and does not advise to start a daemon', async () => {
  const instance = { id: randomUUID(), version: '1', host: 'erp-1', settings: {} }
  const problems = [{ kind: 'loop_failing', part: 'dispatch', detail: '53100', ageMs: 7_000 } as const]
  await writeHeartbeat(fixture.ledger.pool, instance, { problems })
  const { printed } = await run()
  expect(printed).toMatch(/^A part of the daemon keeps failing/)
  expect(printed).not.toContain('outboxd run')
})

test.each([
  [{ every: '2s' }, '--every needs --watch, such as: outboxd status --watch --every 1m'],
  [{ watch: true, every: 'often' }, '--every often: give a duration'],
  [{ watch: true, every: '0s' }, '--every 0s: give a duration'],
])('%j is refused', async (options, message) => {
  const context = fixture.context()
  expect(await status.action(context, options)).toBe(2)
  expect(context.messages()).toContain(message)
})

test('status compares the last hour and day with the service’s targets, and JSON has each kind of request', async () => {
  await alive()
  expect((await run()).printed).toMatch(/last hour +no request for a record\nlast day +no request for a record\n/)
  await fixture.ledger.pool.query(
    `insert into outboxd.request_count
     select date_trunc('minute', now()) - ago, kind, $1, 100, failed, 100, 0
     from (values (interval '1 min', 'submit', 30), ('1 min', 'status', 0), ('3 hours', 'status', 0)) as t(ago, kind, failed)`,
    [randomUUID()],
  )
  const { printed } = await run()
  expect(printed).toMatch(/^In the last hour 30 of 200 requests failed at the service/)
  expect(printed).toMatch(
    /last hour +85 % of 200 submissions and polls succeeded \(below the target of 99 %\), 100 % of the answers came within 2 s \(target 99 %\)\n/,
  )
  expect(printed).toMatch(/last day +90 % of 300 submissions and polls succeeded /)
  expect(JSON.parse((await run(true)).printed).service).toMatchObject({
    targets: { successShare: 0.99, answerSeconds: 2 },
    lastHour: { successShare: 0.85, submit: { requests: 100, failed: 30 }, status: { requests: 100, failed: 0 } },
    lastDay: { status: { requests: 200 } },
  })
})

describe('an uncertain record that outboxd asks the service about', () => {
  const probed = (transactionId: string) => fixture.end({ state: 'sending', transactionId, pollInMs: 60_000 })
  const sentAgo = (ago: string) =>
    fixture.ledger.pool.query(`update outboxd.submission set sent_at = now() - $1::interval`, [ago])

  test.each([
    ['Location named its id', 'tx-1'],
    ['the mapping sends its id', null],
  ])('counts as at the service, not as unsent, if %s', async (_, transactionId) => {
    await alive()
    await probed(transactionId ?? 'own')
    if (transactionId === null)
      await fixture.ledger.pool.query('update outboxd.submission set transaction_id = id::text')
    const { printed } = await run()
    expect(printed).toMatch(/^All is well: 1 uncertain \(outboxd asks the service\)\.\n/)
    expect(printed).toMatch(/to send +0 in the outbox, 0 captured\n/)
    expect(printed).toMatch(/at the service +0 being processed, 1 uncertain \(outboxd asks the service about it\)\n/)
    expect(printed).not.toContain('oldest unsent')
    expect(JSON.parse((await run(true)).printed)).toMatchObject({
      submissions: { sending: 1, accepted: 0 },
      probing: 1,
      oldestUnsent: null,
      oldestAccepted: expect.any(String),
    })
  })

  test('is late after an hour, and after STUCK_AFTER_SECONDS a problem that names it and a command', async () => {
    await alive()
    const id = await probed('tx-1')
    await sentAgo('2 hours')
    const late = await run()
    expect(late.printed).toMatch(/^The service has not said for 2 h .*`outboxd list --state sending,accepted`/)
    const stuck = async () => {
      await replaceProblems(
        fixture.ledger.pool,
        'stuck_transaction',
        await findStuckSubmissionProblems(fixture.ledger.pool, 86_400_000),
      )
      return (await run()).printed
    }
    expect(await stuck()).not.toContain('stuck_transaction')
    await sentAgo('2 days')
    const printed = await stuck()
    expect(printed).not.toContain('All is well')
    expect(printed).toMatch(
      /what became of 1 record sent to it, the oldest outbox:\S+ since .*\. `outboxd list --state sending/,
    )
    await fixture.end({ state: 'accepted', transactionId: 'tx-2', pollInMs: 60_000 })
    await fixture.ledger.pool.query(
      `update outboxd.submission set accepted_at = now() - interval '2 days' where id <> $1`,
      [id],
    )
    expect(await stuck()).toMatch(/1 record sent to it, .*1 accepted record, .*`outboxd list --state sending,accepted`/)
  })
})

describe('while the outbox’s table is locked', () => {
  beforeEach(alive)

  /** Opens a session named like an ERP's form, with an open transaction whose last statement is this. @returns its pid */
  async function form(statement: string): Promise<number> {
    const session = await fixture.ledger.pool.connect()
    session.on('error', () => {}) // a test may end it
    onTestFinished(() => session.release(true))
    await session.query(`set application_name = 'order form'`)
    const { rows } = await session.query<{ pid: number }>('select pg_backend_pid() as pid')
    await session.query('begin')
    await session.query(statement)
    return rows[0]?.pid ?? 0
  }

  test('if the outbox table is locked, status names the session', async () => {
    await fixture.row(payloadOf())
    const pid = await form(`/* for 'customer 7' */ alter table outbox add column secret_1234 text`)
    let begunMs = 0
    const { code, context } = await runStatus(() => {
      begunMs = performance.now()
      return fixture.context()
    })
    const printed = context.printed()
    // Status reads the locks twice, 0.3 s apart. The bound allows for a busy machine. Waiting for the lock took 20 s.
    expect(performance.now() - begunMs).toBeLessThan(10_000)
    expect(printed).toMatch(
      new RegExp(
        `^The outbox’s table is locked by pid ${pid} \\(order form, idle in transaction for \\d+ s, last statement: alter table\\)\\. Until that session ends, no row `,
      ),
    )
    expect(printed).toContain(`run \`select pg_terminate_backend(${pid})\` in the ERP’s database. ${sessionEndCost}\n`)
    expect(printed).toMatch(/to send +unknown in the outbox, 0 captured\n/)
    expect(printed).not.toContain('secret')
    expect(printed).not.toContain('customer')
    expect(code).toBe(1)

    const json = fixture.context()
    expect(await status.action(json, { json: true })).toBe(1)
    expect(JSON.parse(json.printed())).toMatchObject({
      well: false,
      outboxWaiting: null,
      backlog: null,
      outboxLockedBy: [{ pid, application: 'order form', state: 'idle in transaction', statement: 'alter table' }],
    })
    expect(json.printed()).not.toContain('secret')

    const { pool } = fixture.ledger
    const [, statement = ''] = /run `(.*?)`/.exec(printed) ?? []
    await pool.query(statement)
    const said = await until(
      () => runStatus(() => fixture.context()),
      (status) => status.code === 0,
    )
    expect(said.context.printed()).toMatch(/to send +1 in the outbox/)
    const { rows } = await pool.query(`select attname from pg_attribute where attname = 'secret_1234'`)
    expect(rows).toEqual([])
  })

  test('if sessions wait for each other, status names the session that holds the lock, not one that waits', async () => {
    const pid = await form('select from outbox')
    const migration = await fixture.ledger.pool.connect()
    onTestFinished(() => migration.release(true))
    const altering = migration.query('alter table outbox add column more text').catch(() => {})
    const { pool } = fixture.ledger
    await until(
      () => pool.query(`select from pg_locks where not granted and relation = 'outbox'::regclass`),
      ({ rowCount }) => rowCount === 1,
    )
    const { code, context } = await runStatus(() => fixture.context())
    expect(code).toBe(1)
    expect(context.printed()).toContain(`locked by pid ${pid} (order form, idle in transaction`)
    await pool.query('select pg_terminate_backend($1)', [pid])
    await altering
  })

  test('status ignores a lock that is released at once', async () => {
    await fixture.row(payloadOf())
    const session = await fixture.ledger.pool.connect()
    onTestFinished(() => session.release(true))
    await session.query('begin; lock table outbox')
    const ended = runStatus(() => fixture.context())
    const { pool } = fixture.ledger
    await until(
      () => pool.query(`select from pg_locks where not granted and relation = 'outbox'::regclass`),
      ({ rowCount }) => (rowCount ?? 0) > 0,
    )
    await session.query('rollback')
    const { code, context } = await ended
    expect(code).toBe(0)
    expect(context.printed()).toMatch(/^All is well: 1 record to send\./)
  })
})

describe('--watch', () => {
  /** Replaces the escape character by a visible text. */
  const shown = (text: string) => text.replaceAll('\x1b', 'ESC')
  const lines = (text: string) => text.split('\n').slice(0, -1)

  test('without a terminal, each refresh prints one line, and SIGINT exits with 0', async () => {
    await using program = startProgram({
      args: ['status', '--watch', '--every', '1s'],
      env: { DATABASE_URL: fixture.ledger.url },
    })
    await program.line((line) => line.includes('to send 0 in the outbox and 0 captured'))
    await fixture.row(payloadOf())
    const line = await program.line((text) => text.includes('to send 1 in the outbox and 0 captured'))
    expect(line).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ No daemon is running, .* \| to send 1 in the outbox and 0 captured, at the service 0, need attention 0, 100 of 100 requests free$/,
    )
    program.signal('SIGINT')
    expect(await program.ended()).toMatchObject({ code: 0, signal: null, stderr: '' })
  })

  test('--json prints one document on each line', async () => {
    const context = fixture.context()
    const ended = status.action(context, { watch: true, every: '1s', json: true })
    const printed = await until(context.printed, (text) => lines(text).length >= 2)
    context.abort()
    expect(await ended).toBe(0)
    const documents = lines(printed).map((line) => JSON.parse(line))
    for (const document of documents) expect(document).toMatchObject({ well: false, outboxWaiting: 0 })
    expect(Date.parse(documents[1].at)).toBeGreaterThan(Date.parse(documents[0].at))
  })

  test('a terminal is redrawn, shows when the ledger cannot be read, and recovers', async () => {
    const context = fixture.context()
    Object.assign(context.stdout, { isTTY: true, columns: 200, rows: 60 })
    const ended = status.action(context, { watch: true, every: '1s' })
    const first = await until(context.printed, (text) => text.includes('instances'))
    expect(shown(first)).toMatch(
      /^ESC\[2JESC\[Houtboxd status at .*Z, every 1 s; Ctrl-C ends it\n\nESC\[31mNo daemon is running/,
    )
    const { pool } = fixture.ledger
    await pool.query('alter table outboxd.pause rename to pause_away')
    const restore = () => pool.query('alter table if exists outboxd.pause_away rename to pause')
    onTestFinished(() => void restore())
    const second = await until(
      () => context.printed().slice(first.length),
      (text) => text.includes('The ledger cannot be read'),
    )
    expect(shown(second)).toMatch(
      /ESC\[Houtboxd status at .*\n[\s\S]*The ledger cannot be read, and will be read again: .*pause/,
    )
    await restore()
    const before = context.printed().length
    await until(
      () => context.printed().slice(before),
      (text) => text.includes('instances'),
    )
    context.abort()
    expect(await ended).toBe(0)
  })
})
