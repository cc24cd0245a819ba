import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { status } from '../../src/commands/status.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { readOnly } from '../support/readOnly.ts'
import { type Fixture, failedE003, openFixture, payloadOf, uncertain } from './fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(() => fixture.reset())

async function run(json = false, env: Record<string, string> = {}) {
  const context = fixture.context(null, env)
  const code = await status(context, { json })
  return { code, printed: context.printed(), messages: context.messages() }
}

const alive = () => writeHeartbeat(fixture.ledger.pool, { id: randomUUID(), version: '1', host: 'erp-1' })

test('all is well with a daemon and nothing to do', async () => {
  await alive()
  const { code, printed } = await run()
  expect(code).toBe(0)
  expect(printed).toMatch(/^All is well: everything is sent and nothing waits\.\n\n/)
  expect(printed).toMatch(/budget +100 of 100 requests free\n/)
  expect(printed).toMatch(/paused +no\n/)
  expect(printed).toMatch(/instance +\w{8} on erp-1, version 1/)
})

test('without a daemon the first line says so; the rest follows', async () => {
  await fixture.end(failedE003)
  const { printed } = await run()
  const [first, second] = printed.split('\n')
  expect(first).toContain('No daemon is running')
  expect(second).toBe('Also: 1 record waits for a person (1 failed): outboxd list shows them.')
  expect(printed).toMatch(/for a person +0 uncertain, 1 failed, 0 rejected/)
})

test('an instance that is silent for 12 s is not alive', async () => {
  await alive()
  await fixture.ledger.pool.query(`update outboxd.instance set beat_at = now() - interval '13 s'`)
  expect((await run()).printed).toMatch(/instances +none alive; the last was heard .* \(13 s ago\)/)
})

test('a pause stands with its reason, since, until and words', async () => {
  await alive()
  await fixture.ledger.pool.query(
    `insert into outboxd.pause values ('unavailable', now() - interval '2 min', now() + interval '180.4 s', 0, 'E003 it says')`,
  )
  const { printed } = await run()
  expect(printed).toMatch(/^Nothing is sent: paused \(unavailable\) for 2 min/)
  expect(printed).toMatch(/paused +unavailable since .*\(2 min ago\), until .*\(in 3 min\): E003 it says/)
})

test('the backlog is what waits in the outbox and what is captured; the oldest counts from its row', async () => {
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
    budget: { capacity: 100, available: 100, nextSlot: null },
    pauses: [],
    instances: [{ host: 'erp-1' }],
  })
  expect(Date.now() - Date.parse(read.oldestUnsent)).toBeGreaterThan(599_000)
})

test('what is held behind a record that waits for a person is none of the backlog, and is said', async () => {
  await fixture.end(uncertain, { key: 'customer 1' })
  await fixture.ledger.capture([
    { key: 'customer 1' },
    { key: 'customer 1' },
    { key: 'customer 2' },
    { key: 'customer 2' },
  ])
  const { printed } = await run()
  expect(printed).toMatch(/backlog +through in about .*; 2 more are held behind records that wait for a person\n/)
  expect(JSON.parse((await run(true)).printed)).toMatchObject({ backlog: { records: 2 }, heldForPerson: 2 })
})

test('a failed record holds back its key only under block', async () => {
  await fixture.end(failedE003, { key: 'customer 1' })
  await fixture.ledger.capture([{ key: 'customer 1' }])
  const read = async (env = {}) => JSON.parse((await run(true, env)).printed)
  expect(await read()).toMatchObject({ backlog: { records: 1 }, heldForPerson: 0 })
  await fixture.ledger.pool.query(`update outboxd.submission set held = true where state = 'queued'`)
  expect(await read({ KEY_ON_FAILURE: 'block' })).toMatchObject({ backlog: { records: 0 }, heldForPerson: 1 })
})

test('no backlog is through before its last record is due', async () => {
  await fixture.end({ state: 'queued' })
  await fixture.ledger.pool.query(`update outboxd.submission set due_at = now() + interval '10 min'`)
  expect(JSON.parse((await run(true)).printed).backlog.estimatedSeconds).toBe(600)
})

test('the estimate goes by the polls that the last completed ones took', async () => {
  await fixture.end({ state: 'completed', polls: 3, doneMs: 10 })
  await fixture.end({ state: 'completed', polls: 5, doneMs: 10 })
  expect(JSON.parse((await run(true)).printed).backlog.pollsPerRecord).toBe(4)
})

test('before the daemon ever ran, the budget is what the configuration says', async () => {
  await fixture.ledger.pool.query('truncate outboxd.slot')
  expect((await run(false, { RATE_LIMIT_REQUESTS: '70' })).printed).toMatch(/budget +70 of 70 requests free/)
})

test('while the outbox cannot be read the ledger is shown all the same, and the exit code is 1', async () => {
  await alive()
  const { code, printed, messages } = await run(false, {
    DATABASE_URL: 'postgres://localhost:1/none',
    STATE_DATABASE_URL: fixture.ledger.url,
  })
  expect(code).toBe(1)
  expect(printed).toMatch(/^The outbox cannot be read: outboxd check says why/)
  expect(printed).toMatch(/to send +unknown in the outbox, 0 captured/)
  expect(messages).toContain('DATABASE_URL at localhost:1/none')
})

test('a ledger that cannot be written is said, and nobody is told to start the daemon that is there', async () => {
  await using _ = await readOnly(fixture.ledger.pool)
  const { printed } = await run()
  expect(printed).toMatch(
    /^The ledger’s database is read-only, so the daemons send nothing until they can write to it; .* disk/,
  )
  expect(printed).toContain('Also: The outbox’s database is read-only')
  expect(printed).not.toContain('outboxd run')
  expect(printed).toMatch(/instances +unknown: no instance can report/)
  const json = JSON.parse((await run(true)).printed)
  expect(json).toMatchObject({ well: false, readOnly: [{ of: 'ledger', cause: 'setting' }, { of: 'outbox' }] })
})
