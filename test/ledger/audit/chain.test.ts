import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { command as pause } from '../../../src/commands/pause.ts'
import { command as prune } from '../../../src/commands/prune.ts'
import { command as replay } from '../../../src/commands/replay.ts'
import { appendLogsToChain } from '../../../src/ledger/audit/chain.ts'
import { createChainVerifier, verifyChain } from '../../../src/ledger/audit/verifyChain.ts'
import { makeReportsOfEndedRecordsDue } from '../../../src/ledger/reports.ts'
import { pruneOldSubmissions } from '../../../src/ledger/retention.ts'
import { type Fixture, failedE003, openFixture, payloadOf } from '../../commands/fixture.ts'
import { eventually } from '../../support/eventually.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(async () => {
  await fixture.reset()
})

const sql = (text: string, values: unknown[] = []) => fixture.ledger.pool.query(text, values)
const run = () => appendLogsToChain(fixture.ledger.pool, () => true)
const verify = (noted: Parameters<typeof verifyChain>[1] = null) => verifyChain(fixture.ledger.pool, noted)

/** Runs a statement as the owner of the database can: without triggers. */
async function asOwner(text: string, values: unknown[] = []) {
  const client = await fixture.ledger.pool.connect()
  try {
    await client.query('set session_replication_role = replica')
    return await client.query(text, values)
  } finally {
    await client.query('set session_replication_role = origin')
    client.release()
  }
}

const completed = { state: 'completed', result: '{}' } as const

/** Three records and a pause, chained. */
async function chained() {
  const ids = [
    await fixture.end({ ...completed, transactionId: randomUUID() }, { outboxId: '1', amounts: { total: '1.00' } }),
    await fixture.end(failedE003, { outboxId: '2' }),
    await fixture.end({ ...completed, transactionId: randomUUID() }, { outboxId: '3' }),
  ]
  await replay.action(fixture.context(), [ids[1] ?? ''], { as: 'alice', reason: 'again' })
  await pause.action(fixture.context(), { as: 'bob', reason: 'closing' })
  expect(await run()).toMatchObject({ end: 'through', blocks: 1, behindMs: 0 })
  return ids
}

test('the chain has each entry of both logs once, and verification finds no break', async () => {
  await chained()
  const { rows } = await sql(`select (select count(*) from outboxd.submission_event)::int
    + (select count(*) from outboxd.operator_act)::int as n`)
  expect(await verify()).toMatchObject({ broken: null, entries: rows[0].n, waiting: 0, head: { number: '1' } })
  expect(await run()).toMatchObject({ end: 'through', blocks: 0 })
  await fixture.end({ state: 'queued' })
  expect(await verify()).toMatchObject({ broken: null, waiting: 1 })
  await run()
  expect(await verify()).toMatchObject({ broken: null, waiting: 0, blocks: 2 })
})

test('an emptied payload or body, and a replayed body that was not sent yet, do not break the chain', async () => {
  const ids = await chained()
  expect(
    (await sql(`select from outboxd.submission_event where detail ->> 'bodySha256' is not null`)).rowCount,
  ).toBeGreaterThanOrEqual(3)
  await sql(`update outboxd.submission set body = '{}' where id = $1`, [ids[1]]) // the replay's, not sent yet
  await sql(
    `update outboxd.submission set payload = null, body = null, result = null, emptied_at = now() where id = $1`,
    [ids[0]],
  )
  expect(await verify()).toMatchObject({ broken: null })
})

describe('each night the daemon verifies the last day:', () => {
  const verifyDay = async (isWhole = false) => {
    const part = createChainVerifier(fixture.ledger.pool, async () => isWhole)
    const first = await part(() => true)
    return first.end === 'through' ? first : part(() => true)
  }
  const tamper = () =>
    asOwner(`update outboxd.submission_event set cause = 'x' where id = (select min(id) from outboxd.submission_event)`)

  test('a change within that day is found; an older one only by the whole verification or audit --verify', async () => {
    await chained()
    expect(await verifyDay()).toEqual({ end: 'through', broken: null, isWhole: false })
    await tamper()
    expect(await verifyDay()).toMatchObject({ end: 'through', broken: expect.stringContaining('was changed') })
    await asOwner(`update outboxd.chain_block set made_at = now() - interval '26 hours'`)
    await fixture.end({ state: 'queued' })
    await run()
    expect(await verifyDay()).toMatchObject({ end: 'through', broken: null })
    expect(await verifyDay(true)).toEqual({
      end: 'through',
      broken: expect.stringContaining('was changed'),
      isWhole: true,
    })
    expect((await verify()).broken).toContain('was changed')
  })

  test('a verification that stops midway goes on from there in the next call', async () => {
    await chained()
    await fixture.end({ state: 'queued' })
    await run()
    await tamper()
    const part = createChainVerifier(fixture.ledger.pool, async () => false)
    expect(await part(() => false)).toEqual({ end: 'begun' })
    expect(await part(() => true)).toMatchObject({ end: 'through', broken: expect.stringContaining('was changed') })
  })
})

test.each([
  'daemon 1',
  'operator alice',
])('a pruned record that %s brings back does not break the chain, even when its first events’ block is emptied', async (who) => {
  await fixture.end({ ...completed, transactionId: randomUUID() }, { outboxId: '1' })
  await run()
  await asOwner(`update outboxd.submission set ended_at = now() - interval '91 days', report_due = false`)
  expect(await pruneOldSubmissions(fixture.ledger.pool, { olderThanDays: 90, limit: 20 })).toBe(1)
  expect(await makeReportsOfEndedRecordsDue(fixture.ledger.pool, ['1'], who)).toBe(1)
  await run()
  expect(await verify()).toMatchObject({ broken: null, waiting: 0 })
  await sql('update outboxd.chain_block set look_at = now()')
  await run()
  expect((await sql('select from outboxd.chain_block where leaves is null')).rowCount).toBe(1)
  expect(await verify()).toMatchObject({ broken: null, waiting: 0 })
})

describe('the first break is named:', () => {
  const someEvent = `(select id from outboxd.submission_event where who like 'operator%')`
  test.each([
    ['who did it', `update outboxd.submission_event set who = 'operator eve' where id = ${someEvent}`, 'was changed'],
    [
      'why',
      `update outboxd.submission_event set detail = detail || '{"reason":"ordered"}' where id = ${someEvent}`,
      'was changed',
    ],
    ['when', `update outboxd.submission_event set at = at - interval '1 day' where id = ${someEvent}`, 'was changed'],
    ['what', `update outboxd.submission_event set cause = 'captured' where id = ${someEvent}`, 'was changed'],
    [
      'an amount',
      `update outboxd.submission_event set amounts = '{"total":"9.00"}' where amounts ->> 'total' = '1.00'`,
      'was changed',
    ],
    [
      'a currency',
      `update outboxd.submission_event set detail = detail || '{"currency":"USD"}' where amounts ->> 'total' = '1.00'`,
      'was changed',
    ],
    [
      'what was sent before a replay',
      `update outboxd.submission_event set detail = jsonb_set(detail, '{former,body}', '"x"') where id = ${someEvent}`,
      'was changed',
    ],
    [
      'a step is taken away',
      `delete from outboxd.submission_event where id = ${someEvent}`,
      'is missing, but its submission exists',
    ],
    [
      'a step is slipped in',
      `insert into outboxd.submission_event (id, submission_id, to_state, attempt, cause, who) overriding system value
       select (select min(id) - 1 from outboxd.submission_event), submission_id, 'queued', 0, 'x', 'y' from outboxd.submission_event limit 1`,
      'was added',
    ],
    ['an act', `update outboxd.operator_act set reason = 'no'`, 'act'],
    ['an act is taken away', `delete from outboxd.operator_act`, 'act'],
    [
      'a change disguised as an erasure',
      `update outboxd.submission_event set detail_digest = outboxd.detail_digest(cause, detail),
       cause = 'replay: ordered by the board' where id = ${someEvent}`,
      'is marked as erased, but is not',
    ],
    [
      'a change disguised as emptied contents',
      `update outboxd.submission_event set contents_digest = outboxd.contents_digest(detail),
       detail = jsonb_set(detail, '{former,body}', '"x"') where id = ${someEvent}`,
      'is marked as emptied, but is not',
    ],
    [
      'the body that was sent',
      `update outboxd.submission set body = '{"total_amount":9.00}' where state = 'completed'`,
      'was changed since it was sent',
    ],
    [
      'the body that was sent is taken away',
      `update outboxd.submission set body = null where state = 'completed'`,
      'was changed since it was sent',
    ],
    ['a block', `update outboxd.chain_block set leaves = sha256('')`, 'block 1 was changed'],
    [
      'the submissions of a block',
      `update outboxd.chain_block set submission_ids = array_fill(gen_random_uuid(), array[events])`,
      'block 1 was changed',
    ],
    [
      'the last event of a block',
      `update outboxd.chain_block set last_event = last_event + 1`,
      'block 1 does not follow',
    ],
  ])('%s', async (_, tamper, message) => {
    await chained()
    expect((await asOwner(tamper)).rowCount).toBeGreaterThan(0)
    expect((await verify()).broken).toContain(message)
  })

  test('a block is removed', async () => {
    await chained()
    await fixture.end({ state: 'queued' })
    await run()
    await asOwner('delete from outboxd.chain_block where number = 1')
    expect((await verify()).broken).toBe('block 1 is missing')
  })

  async function emptySecondBlock() {
    const { rowCount } = await asOwner(
      'update outboxd.chain_block set event_ids = null, submission_ids = null, leaves = null where number = 2',
    )
    expect(rowCount).toBe(1)
  }

  test('acts are removed, and their block is emptied as by retention', async () => {
    await chained()
    const { head } = await verify()
    await pause.action(fixture.context(), { as: 'eve', reason: 'mine' })
    await run()
    await asOwner(`delete from outboxd.operator_act where who = 'operator eve'`)
    await emptySecondBlock()
    expect((await verify(head)).broken).toBe('block 2 was emptied, but operators’ acts are in it')
  })

  test('all events of an existing record are removed, and their block is emptied', async () => {
    await chained()
    const [id] = await fixture.ledger.capture([{ outboxId: '4' }])
    await run()
    await asOwner('delete from outboxd.submission_event where submission_id = $1', [id])
    await emptySecondBlock()
    const lost = { broken: `submission ${id} has lost the beginning of its log`, brokenBy: 'log' }
    expect(await verify()).toMatchObject(lost)
    await asOwner(
      `insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
       values ($1, 'queued', 'sending', 1, 'slot', 'daemon')`,
      [id],
    )
    await run()
    expect(await verify()).toMatchObject(lost)
  })

  test('the whole chain is written anew, which only a noted head shows', async () => {
    await chained()
    const { head } = await verify()
    await fixture.end({ state: 'queued' })
    await run()
    expect(await verify(head)).toMatchObject({ broken: null, blocks: 2 })
    await asOwner(`update outboxd.submission_event set who = 'operator eve' where who = 'operator alice'`)
    await asOwner('delete from outboxd.chain_block')
    expect((await verify(head)).broken).toContain('the noted block 1 is missing')
    await run()
    expect((await verify()).broken).toBeNull()
    expect((await verify(head)).broken).toContain('block 1 differs from the noted one')
  })
})

test('triggers refuse every change of the chain', async () => {
  await chained()
  await expect(sql('delete from outboxd.chain_block')).rejects.toThrow('append-only')
  await expect(sql('update outboxd.chain_block set hash = digest')).rejects.toThrow('append-only')
  await expect(
    sql('update outboxd.chain_block set event_ids = null, submission_ids = null, leaves = null'),
  ).rejects.toThrow('append-only')
})

test('the chain waits for a log entry with a lower id that commits late', async () => {
  const [id = ''] = await fixture.ledger.capture([{}])
  const slow = await fixture.ledger.pool.connect()
  const insert = `insert into outboxd.submission_event (submission_id, to_state, attempt, cause, who) values ($1, 'queued', 0, 'x', 'y')`
  await slow.query('begin')
  await slow.query(insert, [id])
  await sql(insert, [id]) // a higher id, committed before
  const chaining = run()
  await eventually(async () => {
    const { rowCount } = await sql(
      `select from pg_stat_activity where query like '%virtualtransaction = any%' and pid <> pg_backend_pid()`,
    )
    expect(rowCount).toBeGreaterThan(0)
  })
  expect((await sql('select from outboxd.chain_block')).rowCount).toBe(0)
  await slow.query('commit')
  slow.release()
  await chaining
  expect(await verify()).toMatchObject({ broken: null, entries: 3, waiting: 0 })
})

test('an open transaction holds up the chain, which says for how long, until the transaction ends', async () => {
  const [id = ''] = await fixture.ledger.capture([{}])
  const slow = await fixture.ledger.pool.connect()
  await slow.query('begin')
  await slow.query(
    `insert into outboxd.submission_event (submission_id, to_state, attempt, cause, who) values ($1, 'queued', 0, 'x', 'y')`,
    [id],
  )
  let asked = 0
  const round = await appendLogsToChain(fixture.ledger.pool, () => asked++ < 3) // the daemon ends while it waits
  expect(round.blocks).toBe(0)
  expect(round.behindMs).toBeGreaterThan(0)
  await slow.query('rollback')
  slow.release()
  await run()
  expect(await verify()).toMatchObject({ broken: null, entries: 1 })
})

test('several daemons extend the chain at once, and each entry is in it once', async () => {
  const writers = Array.from({ length: 4 }, async () => {
    for (let i = 0; i < 25; i++) await fixture.ledger.capture([{}, {}])
  })
  let isWriting = true
  const chainers = [1, 2].map(async () => {
    while (isWriting) await run()
  })
  await Promise.all(writers)
  isWriting = false
  await Promise.all(chainers)
  await run()
  expect(await verify()).toMatchObject({ broken: null, entries: 200, waiting: 0 })
})

test('retention leaves the chain whole, and a block without entries keeps only its digest', async () => {
  const ids = await chained()
  const [later] = await fixture.ledger.capture([{ outboxId: '4', error: 'does not map' }])
  await run()
  await sql(`update outboxd.submission set state = 'discarded' where id = $1`, [later])
  await sql(
    `update outboxd.submission set ended_at = now() - interval '100 days', report_due = false where id = any($1)`,
    [[ids[0], later]],
  )
  await sql(`update outboxd.submission set ended_at = now() - interval '40 days', report_due = false where id = $1`, [
    ids[2],
  ])
  expect(await prune.action(fixture.context(), {})).toBe(0)
  expect(await verify()).toMatchObject({ broken: null, gone: 4, waiting: 1 }) // the prune's counts
  await sql('update outboxd.chain_block set look_at = now()')
  await run()
  expect(
    (await sql('select number::int, leaves is null as small from outboxd.chain_block order by number')).rows,
  ).toEqual([
    { number: 1, small: false },
    { number: 2, small: true },
    { number: 3, small: false },
    { number: 4, small: false },
  ])
  expect(await verify()).toMatchObject({ broken: null, gone: 4, waiting: 0 })
  await asOwner(`update outboxd.chain_block set digest = sha256('x') where number = 2`)
  expect((await verify()).broken).toContain('block 2 does not follow')
})

test('contents that a replay noted are emptied by retention without breaking the chain', async () => {
  const id = await fixture.end(failedE003, { outboxId: '1', payload: payloadOf(), body: '{"old":1}' })
  await replay.action(fixture.context(), [id], {})
  await run()
  await sql(
    `update outboxd.submission set state = 'completed', due_at = null, ended_at = now() - interval '40 days', report_due = false, held = false`,
  )
  expect(await prune.action(fixture.context(), {})).toBe(0)
  const { rows } = await sql(
    `select detail -> 'former' ? 'body' as has_body from outboxd.submission_event where cause = 'replay'`,
  )
  expect(rows).toEqual([{ has_body: false }])
  expect(await verify()).toMatchObject({ broken: null, reduced: 1 })
})

test('a record that is not in the chain yet cannot be deleted', async () => {
  const id = await fixture.end({ ...completed, transactionId: 'tx' })
  await expect(sql('delete from outboxd.submission where id = $1', [id])).rejects.toThrow('not in the chain yet')
  await run()
  await sql('delete from outboxd.submission where id = $1', [id])
  expect(await verify()).toMatchObject({ broken: null, gone: 3 })
})

test('the head with which a day ended is reported once', async () => {
  await chained()
  await asOwner(`update outboxd.chain_block set made_at = made_at - interval '1 day'`)
  await fixture.end({ state: 'queued' })
  const { head } = await verify()
  expect((await run()).endOfDay).toEqual(head)
  await fixture.ledger.capture([{}])
  expect((await run()).endOfDay).toBeNull()
})
