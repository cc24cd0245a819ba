import { describe, expect, test } from 'vitest'
import { command as discard } from '../../src/commands/discard.ts'
import { command as list } from '../../src/commands/list.ts'
import { command as replay } from '../../src/commands/replay.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import type { GivenChange } from '../support/change.ts'
import { setKeyOnFailure, setSettings } from '../support/ledger.ts'
import { failedE003, mappingFiles, openFixtureForFile, payloadOf, uncertain } from './fixture.ts'

const fixture = openFixtureForFile()

async function run(
  ids: string[],
  options: OptionsOf<typeof replay> = {},
  { input = null, env = {} }: { input?: string | null; env?: Record<string, string> } = {},
) {
  const context = fixture.context(input, env)
  const code = await replay.action(context, ids, options)
  return { code, printed: context.printed(), messages: context.messages() }
}

const lastEvent = async (id: string) => {
  const { rows } = await fixture.ledger.pool.query(
    'select from_state, to_state, attempt, cause, who, detail from outboxd.submission_event where submission_id = $1 order by id desc limit 1',
    [id],
  )
  return rows[0]
}

test('replay queues a failed record as new with a new key, and the log keeps the former request and answer', async () => {
  const body = '{"old":1.0}'
  const id = await fixture.end(
    {
      ...failedE003,
      transactionId: 'tx-1',
      serverErrors: 3,
      renewedKeys: 2,
      resubmissions: 3,
      inDoubt: true,
      polls: 9,
      fruitless: 2,
      notDoneMs: 5,
      doneMs: 9,
    },
    { outboxId: '1', body },
  )
  const before = await fixture.ledger.row(id)
  expect((await run(['outbox:1'])).code).toBe(0)
  const after = await fixture.ledger.row(id)
  expect(after).toMatchObject({
    state: 'queued',
    held: false,
    server_errors: 0,
    renewed_keys: 0,
    resubmissions: 0,
    in_doubt: false,
    polls: 0,
    fruitless: 0,
    not_done_ms: null,
    done_ms: null,
    transaction_id: null,
    error_code: null,
    error: null,
    ended_at: null,
    report_due: true,
    attempt: 1,
    payload: payloadOf(),
  })
  expect(after.idempotency_key).not.toBe(before.idempotency_key)
  expect(after.revision).toBe(Number(before.revision) + 1)
  expect(JSON.parse(String(after.body)).data.total_amount).toBe(12.3)
  expect(after.body).toContain('"total_amount":12.30')
  expect(await lastEvent(id)).toEqual({
    from_state: 'failed',
    to_state: 'queued',
    attempt: 1,
    cause: 'replayed',
    who: expect.stringMatching(/^operator .+/),
    detail: {
      account: expect.stringContaining('@'),
      currency: 'EUR',
      former: {
        code: 'E003',
        error: 'the service was down',
        transactionId: 'tx-1',
        idempotencyKey: before.idempotency_key,
        body,
      },
    },
  })
  expect(await fixture.ledger.countStates()).toEqual({ queued: 1 })
})

test('replay queues a rejected record that the fixed mapping maps', async () => {
  const payload = payloadOf({ field1: '"neu"' })
  const id = await fixture.end({ state: 'rejected' }, { outboxId: '1', payload, body: null, error: 'field1 is wrong' })
  const still = await run(['outbox:1'])
  expect(still.code).toBe(1)
  expect(still.messages).toContain('still cannot be sent: field1 (from field1)')
  expect((await fixture.ledger.row(id)).revision).toBe(0)

  const mended = mappingFiles({
    'data.yaml': `type: data\nendpoint: data\ntrack: false\nfields:\n  f: { from: field1, type: string }\nbody:\n  f: \${f}\n`,
  })
  expect((await run(['outbox:1'], {}, { env: { MAPPINGS_DIR: mended } })).code).toBe(0)
  expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', body: '{"f":"neu"}', tracked: false })
})

test('a row that is not a version of its document is not replayed, because nobody would know that it was sent', async () => {
  const files = mappingFiles({
    'data.yaml': `type: data
endpoint: data
document: { table: public.outbox, key: id }
source: select id, 'x' as f from outbox where id = any($1)
fields:
  f: { from: f, type: string }
body:
  f: \${f}
`,
  })
  const id = await fixture.end({ state: 'discarded' }, { outboxId: '2' })
  const { code, messages } = await run([id], { discarded: true }, { env: { MAPPINGS_DIR: files } })
  expect(code).toBe(1)
  expect(messages).toContain('is not a version of its document, so nobody would know that it was sent. Write a new row')
  expect((await fixture.ledger.row(id)).state).toBe('discarded')
})

test('of several failed versions of a document, replay queues only the newest', async () => {
  const version = { document: '5', key: '5' }
  await fixture.end({ ...failedE003, mayHaveArrived: true }, { ...version, outboxId: '1' })
  await fixture.end(failedE003, { ...version, outboxId: '2', body: '{}' })
  const reason = 'is older than outbox:2, the newest version of its document, and only that is sent. Discard it'
  const { printed } = await run(['outbox:1', 'outbox:2'], { dryRun: true })
  expect(printed).toContain(reason)
  const { code, messages } = await run(['outbox:1', 'outbox:2'], { yes: true })
  expect([code, messages]).toEqual([1, expect.stringContaining(reason)])
  const { rows } = await fixture.ledger.pool.query('select outbox_id, state from outboxd.submission order by seq')
  expect(rows).toEqual([
    { outbox_id: '1', state: 'failed' },
    { outbox_id: '2', state: 'queued' },
  ])
})

test('a bulk replay leaves out a change after sending; by its id it is sent, too', async () => {
  const version = { document: '5', key: '5' }
  await fixture.end({ state: 'completed', transactionId: 'tx-1' }, { ...version, outboxId: '1' })
  const payload = payloadOf({ amount: '2.00' })
  const [id = ''] = await fixture.ledger.capture([{ ...version, payload, outboxId: '2', body: '{}' }], 'once')
  expect((await run([], { yes: true })).messages).toContain('may have arrived')
  expect((await fixture.ledger.row(id)).state).toBe('rejected')
  expect((await run(['outbox:2'], { yes: true })).code).toBe(0)
  expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', changed_after_sent: false })
})

test('a listed change that the ERP took back is superseded, and is not replayed by its id', async () => {
  const version = { document: '5', key: '5' }
  const sent = { ...version, payload: payloadOf({ amount: '1.00' }), body: '{"a":1}' }
  const [first = ''] = await fixture.ledger.capture([{ ...sent, outboxId: '1' }], 'once')
  await fixture.ledger.pool.query(
    `update outboxd.submission set state = 'completed', held = false, due_at = null, ended_at = now() where id = $1`,
    [first],
  )
  const [second = ''] = await fixture.ledger.capture([{ ...sent, outboxId: '2', body: '{"a":2}' }], 'once')
  await fixture.ledger.capture([{ ...sent, outboxId: '3' }], 'once')
  expect(await fixture.ledger.row(second)).toMatchObject({ state: 'discarded', error: 'superseded by outbox:3' })
  const { code, messages } = await run(['outbox:2'], { discarded: true, yes: true })
  expect([code, messages]).toEqual([1, expect.stringContaining('was superseded by a later version of its document')])
  expect((await fixture.ledger.row(second)).state).toBe('discarded')
})

describe('--refresh', () => {
  test('reads payload, type and key from the outbox row', async () => {
    const outboxId = await fixture.row(payloadOf({ amount: '99.90' }))
    await fixture.ledger.pool.query(`update outbox set key = 'corrected' where id = $1`, [outboxId])
    const id = await fixture.end(failedE003, { outboxId, key: 'k' })
    expect((await run([id])).code).toBe(0)
    expect((await fixture.ledger.row(id)).body).toContain('12.30')
    await fixture.ledger.pool.query(`update outboxd.submission set state = 'failed', due_at = null, ended_at = now()`)
    expect((await run([id], { refresh: true })).code).toBe(0)
    const row = await fixture.ledger.row(id)
    expect(row.body).toContain('"total_amount":99.90')
    expect(row).toMatchObject({ type: 'data', key: 'corrected' })
    expect((await lastEvent(id)).detail.former.payload).toContain('12.30')
    await fixture.ledger.pool.query(
      `update outboxd.submission set state = 'failed', due_at = null, held = false, ended_at = now()`,
    )
    await fixture.ledger.pool.query(`update outbox set type = 'unmapped' where id = $1`, [outboxId])
    const refused = await run([id], { refresh: true })
    expect(refused.messages).toContain('still cannot be sent: no mapping')
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'failed', type: 'data' })
  })

  test('after its key was corrected, the record is in order with the new key, and no longer with the old', async () => {
    await setKeyOnFailure(fixture.ledger.pool, 'block')
    const outboxId = await fixture.row(payloadOf())
    const id = await fixture.end(failedE003, { outboxId, key: 'wrong' })
    const ofWrong = await fixture.end({ state: 'queued' }, { key: 'wrong' })
    await fixture.ledger.pool.query(`update outboxd.submission set held = true where id = $1`, [ofWrong])
    await fixture.ledger.pool.query(`update outbox set key = 'right' where id = $1`, [outboxId])
    expect((await run([id], { refresh: true })).code).toBe(0)
    const ofRight = await fixture.end({ state: 'queued' }, { key: 'right' })
    const held = async (each: string) => (await fixture.ledger.row(each)).held
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', key: 'right' })
    expect([await held(id), await held(ofWrong), await held(ofRight)]).toEqual([false, false, true])
  })

  test('a row that was unreadable and was then corrected is read, and keeps its place in order', async () => {
    const outboxId = await fixture.row(payloadOf({ amount: '99.90' }))
    const record = { outboxId, type: '', key: null, payload: null, body: null, created: null }
    const id = await fixture.end(
      { state: 'rejected' },
      { ...record, error: 'the row cannot be captured: it cannot be read' },
    )
    await fixture.ledger.pool.query(`update outbox set key = 'k' where id = $1`, [outboxId])
    const behind = await fixture.end({ state: 'queued' }, { key: 'k' })
    expect((await run([id], { refresh: true })).code).toBe(0)
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', type: 'data', key: 'k' })
    expect((await fixture.ledger.row(id)).body).toContain('"total_amount":99.90')
    const third = await fixture.end({ state: 'queued' }, { key: 'k' })
    expect([await fixture.ledger.row(id), await fixture.ledger.row(third)]).toMatchObject([
      { held: false },
      { held: true },
    ])
    expect((await fixture.ledger.row(behind)).state).toBe('queued')
  })

  test('a payload may be as large as the ledger says, whatever the shell says', async () => {
    await setSettings(fixture.ledger.pool, { PAYLOAD_MAX_BYTES: '20' })
    const id = await fixture.end(failedE003, { outboxId: await fixture.row(payloadOf()) })
    const { messages } = await run([id], { refresh: true }, { env: { PAYLOAD_MAX_BYTES: '1000' } })
    expect(messages).toContain('94 bytes, more than the 20 that PAYLOAD_MAX_BYTES allows')
    expect((await fixture.ledger.row(id)).state).toBe('failed')
  })

  test('if the row is gone, the record does not change', async () => {
    const id = await fixture.end(failedE003, { outboxId: '987654' })
    const { code, messages } = await run([id], { refresh: true })
    expect(code).toBe(1)
    expect(messages).toContain('no longer in the outbox')
    expect((await fixture.ledger.row(id)).state).toBe('failed')
  })
})

test.each([
  [uncertain, 'outboxd resolve'],
  [{ state: 'completed' } as const, 'it has arrived'],
  [{ state: 'queued' } as const, 'it is under way'],
])('replay refuses a record that is $0.state, with the reason', async (change, reason) => {
  const id = await fixture.end(change)
  const { code, messages } = await run([id])
  expect(code).toBe(1)
  expect(messages).toContain(reason)
  expect((await fixture.ledger.row(id)).state).toBe(change.state)
})

test('a replayed record takes its former place in the order of its key', async () => {
  const first = await fixture.end(failedE003, { key: 'k' })
  const second = await fixture.end(uncertain, { key: 'k' })
  await run([first])
  // It is before the uncertain record, so it is released.
  expect(await fixture.ledger.row(first)).toMatchObject({ state: 'queued', held: false })
  const third = await fixture.end({ state: 'queued' }, { key: 'k' })
  expect((await fixture.ledger.row(third)).held).toBe(true)
  expect((await fixture.ledger.row(second)).state).toBe('uncertain')
})

test('a replayed record is held if an earlier record of its key is uncertain', async () => {
  const first = await fixture.end({ state: 'failed', errorCode: null, error: null }, { key: 'k' })
  const second = await fixture.end(failedE003, { key: 'k' })
  await fixture.ledger.pool.query(`update outboxd.submission set state = 'uncertain' where id = $1`, [first])
  expect((await run([second])).code).toBe(0)
  expect((await fixture.ledger.row(second)).held).toBe(true)
})

describe('a record that may have arrived', () => {
  const servedBadly: GivenChange = { state: 'failed', error: '500 four times', inDoubt: true, mayHaveArrived: true }

  test('is not replayed by a filter, and the message says why and how to replay it', async () => {
    const spared = await fixture.end(servedBadly, { outboxId: '1' })
    const other = await fixture.end(failedE003, { outboxId: '2' })
    const { code, messages } = await run([], { state: 'failed', yes: true })
    expect(code).toBe(1)
    expect(messages).toContain('outbox:1')
    expect(messages).toContain(
      'may have arrived: check at the service first. To send it again, name its id or give --even-if-arrived',
    )
    expect((await fixture.ledger.row(spared)).state).toBe('failed')
    expect((await fixture.ledger.row(other)).state).toBe('queued')
  })

  test('does not count towards --limit', async () => {
    await fixture.end(servedBadly)
    const other = await fixture.end(failedE003)
    await run([], { limit: '1', yes: true })
    expect((await fixture.ledger.row(other)).state).toBe('queued')
  })

  test('is replayed with --even-if-arrived, which shows the risk and asks', async () => {
    const id = await fixture.end(servedBadly)
    const { code, messages } = await run([], { evenIfArrived: true }, { input: 'n\n' })
    expect(code).toBe(4)
    expect(messages).toMatch(/1 +failed +data +- +may have arrived/)
    expect(messages).toContain('1 record may have arrived. The service would then have it twice, unless')
    expect((await run([], { evenIfArrived: true, yes: true })).code).toBe(0)
    expect((await fixture.ledger.row(id)).state).toBe('queued')
  })

  test('is replayed if its id is given, with its former key and an attempt in doubt', async () => {
    const id = await fixture.end(servedBadly)
    const before = await fixture.ledger.row(id)
    const { code, messages } = await run([id])
    expect(code).toBe(0)
    expect(messages).toContain('1 record may have arrived.')
    const after = await fixture.ledger.row(id)
    expect(after).toMatchObject({ state: 'queued', in_doubt: true, may_have_arrived: false, server_errors: 0 })
    expect(after.idempotency_key).toBe(before.idempotency_key)
  })

  test('is replayed with a new key and an attempt in doubt with --new-key', async () => {
    const id = await fixture.end(servedBadly)
    const before = await fixture.ledger.row(id)
    const { code, messages } = await run([id], { newKey: true })
    expect(code).toBe(0)
    expect(messages).toContain('would then have it twice, because the idempotency key is new')
    const after = await fixture.ledger.row(id)
    expect(after.in_doubt).toBe(true)
    expect(after.idempotency_key).not.toBe(before.idempotency_key)
  })

  test('gets a new key if the service has failed the transaction of its former key', async () => {
    const id = await fixture.end({ ...servedBadly, transactionId: 'tx-1', errorCode: 'E001', doneMs: 900 })
    const before = await fixture.ledger.row(id)
    await run([id])
    const after = await fixture.ledger.row(id)
    expect(after.in_doubt).toBe(true)
    expect(after.idempotency_key).not.toBe(before.idempotency_key)
  })
})

describe('--discarded', () => {
  async function discarded(change: GivenChange, outboxId = '1'): Promise<string> {
    const id = await fixture.end(change, { outboxId })
    expect(await discard.action(fixture.context(), [id], { reason: 'given up' })).toBe(0)
    return id
  }

  test('sends a discarded record again, under a new key if it cannot have arrived', async () => {
    const id = await discarded(failedE003)
    const before = await fixture.ledger.row(id)
    expect(await run(['outbox:1'])).toMatchObject({
      code: 1,
      messages: expect.stringContaining('it was discarded. `outboxd show ID` says whether it can be sent again'),
    })
    expect((await run(['outbox:1'], { discarded: true })).code).toBe(0)
    const after = await fixture.ledger.row(id)
    expect(after).toMatchObject({ state: 'queued', in_doubt: false, ended_at: null, report_due: true })
    expect(after.idempotency_key).not.toBe(before.idempotency_key)
    expect(await lastEvent(id)).toMatchObject({ from_state: 'discarded', to_state: 'queued', cause: 'replayed' })
  })

  test('warns of one that was uncertain: it may have arrived, and keeps its key', async () => {
    const id = await discarded(uncertain)
    const before = await fixture.ledger.row(id)
    const { code, messages } = await run(['outbox:1'], { discarded: true })
    expect([code, messages]).toEqual([0, expect.stringContaining('1 record may have arrived. The service would then')])
    expect(await fixture.ledger.row(id)).toMatchObject({
      state: 'queued',
      in_doubt: true,
      idempotency_key: before.idempotency_key,
    })
  })

  test('reads the row again if the payload was emptied, and refuses an erased record', async () => {
    const erased = await discarded(failedE003, 'erased')
    await fixture.ledger.pool.query(
      `update outboxd.submission set payload = null, body = null, error = null, emptied_at = now(), erased_at = now() where id = $1`,
      [erased],
    )
    const outboxId = await fixture.row(payloadOf())
    const id = await fixture.end(failedE003, { outboxId })
    await discard.action(fixture.context(), [id], { reason: 'given up' })
    await fixture.ledger.pool.query(
      `update outboxd.submission set payload = null, body = null, emptied_at = now() where id = $1`,
      [id],
    )
    expect((await run([id], { discarded: true })).messages).toContain('does not have its payload: add --refresh')
    expect((await run([id], { discarded: true, refresh: true })).code).toBe(0)
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', emptied_at: null })
    expect((await run([erased], { discarded: true, refresh: true })).messages).toContain('was erased')
    expect((await fixture.ledger.row(erased)).state).toBe('discarded')
  })

  test('needs ids', async () => {
    expect((await run([], { discarded: true })).code).toBe(2)
  })
})

describe('in bulk', () => {
  test('replay shows what it would do and asks, and after n changes nothing', async () => {
    for (let i = 0; i < 7; i++) await fixture.end(failedE003)
    const { code, messages } = await run([], { state: 'failed' }, { input: 'n\n' })
    expect(code).toBe(4)
    expect(messages).toContain('This would replay 7 records')
    expect(messages).toMatch(/7 +failed +data +E003/)
    expect(messages).toContain('... and 2 more')
    expect(messages).toContain('Replay 7 records? [y/N]')
    expect(await fixture.ledger.countStates()).toEqual({ failed: 7 })
  })

  test('after y the records are replayed', async () => {
    for (let i = 0; i < 3; i++) await fixture.end(failedE003)
    expect((await run([], { code: 'E003' }, { input: 'y\n' })).code).toBe(0)
    expect(await fixture.ledger.countStates()).toEqual({ queued: 3 })
  })

  test('the end of input counts as no', async () => {
    await fixture.end(failedE003)
    expect((await run([], {}, { input: '' })).code).toBe(4)
  })

  test('without a terminal and without --yes nothing changes, and the message names --yes', async () => {
    await fixture.end(failedE003)
    const { code, messages } = await run([], { state: 'failed' })
    expect(code).toBe(4)
    expect(messages).toContain('--yes')
    expect(await fixture.ledger.countStates()).toEqual({ failed: 1 })
  })

  test('replay also asks about several ids', async () => {
    const ids = [await fixture.end(failedE003), await fixture.end(failedE003)]
    expect((await run(ids)).code).toBe(4)
    expect((await run(ids, { yes: true })).code).toBe(0)
    expect(await fixture.ledger.countStates()).toEqual({ queued: 2 })
  })

  test('--yes replays the records that map, reports those that do not, and exits with 1', async () => {
    await fixture.end(failedE003)
    await fixture.end({ state: 'rejected' }, { body: null, error: 'x', payload: '{}', outboxId: '77' })
    await fixture.end(uncertain)
    const { code, messages } = await run([], { yes: true })
    expect(code).toBe(1)
    expect(messages).toContain('outbox:77')
    expect(messages).toContain('Replayed 1 record; 1 record left alone')
    expect(await fixture.ledger.countStates()).toEqual({ queued: 1, rejected: 1, uncertain: 1 })
  })

  test('replay handles more records than one batch', async () => {
    await fixture.ledger.capture(Array.from({ length: 250 }, () => ({ payload: payloadOf(), body: null, error: 'x' })))
    expect((await run([], { state: 'rejected', yes: true })).code).toBe(0)
    expect(await fixture.ledger.countStates()).toEqual({ queued: 250 })
  })

  test('--dry-run changes nothing, reports the records that still do not map, and exits with 0', async () => {
    await fixture.end(failedE003)
    await fixture.end({ state: 'rejected' }, { body: null, error: 'x', payload: '{}', outboxId: '77' })
    const { code, printed, messages } = await run([], { dryRun: true })
    expect(code).toBe(0)
    expect(printed).toContain('This would replay 1 record')
    expect(printed).toContain('outbox:77')
    expect(messages).toContain('Would replay 1 record')
    expect(await fixture.ledger.countStates()).toEqual({ failed: 1, rejected: 1 })
  })

  test('--limit takes the oldest', async () => {
    const [first] = [await fixture.end(failedE003), await fixture.end(failedE003)]
    expect((await run([], { limit: '1', yes: true })).code).toBe(0)
    expect((await fixture.ledger.row(first)).state).toBe('queued')
    expect(await fixture.ledger.countStates()).toEqual({ queued: 1, failed: 1 })
  })

  test('replay exits with 3 if no record matches, also with --dry-run', async () => {
    expect((await run([], { yes: true })).code).toBe(3)
    expect((await run([], { dryRun: true })).code).toBe(3)
    expect((await run(['outbox:nothing'])).code).toBe(3)
  })

  test('--json lists the records that were replayed and those that were not', async () => {
    const good = await fixture.end(failedE003)
    const bad = await fixture.end(uncertain, { outboxId: '5' })
    const { printed } = await run([good, bad], { yes: true, json: true })
    expect(JSON.parse(printed)).toEqual({
      dryRun: false,
      replayed: [good],
      leftAlone: [{ id: bad, outboxId: '5', reason: expect.stringContaining('outboxd resolve') }],
    })
  })
})

test.each([
  [['outbox:1'], { state: 'failed' }, 'not both'],
  [[], { state: 'uncertain' }, 'outboxd resolve'],
  [[], { state: 'completed' }, 'it has arrived'],
])('wrong usage exits with 2: %j %j', async (ids, options, message) => {
  const { code, messages } = await run(ids, options)
  expect(code).toBe(2)
  expect(messages).toContain(message)
})

test('--may-have-arrived without --even-if-arrived replays nothing, and says so', async () => {
  await fixture.end(failedE003)
  const id = await fixture.end({ ...failedE003, mayHaveArrived: true })
  const spared = await run([], { mayHaveArrived: true })
  expect(spared.code).toBe(1)
  expect(spared.messages).toContain(`(${id}) may have arrived: check at the service first`)
  const both = await run([], { mayHaveArrived: true, evenIfArrived: true, json: true, dryRun: true })
  expect(JSON.parse(both.printed).replayed).toEqual([id])
})

test('the command that list --by-cause prints replays exactly the records of that line', async () => {
  const refused = (error: string): GivenChange => ({ state: 'rejected', errorCode: 'E001', error })
  const mine = [
    await fixture.end(refused('customer C1 is unknown')),
    await fixture.end(refused('customer C2 is unknown')),
  ]
  await fixture.end(refused('amount 12 is too much'))
  const context = fixture.context()
  await list.action(context, { byCause: true, json: true })
  const [cause] = JSON.parse(context.printed()) as { cause: string; command: string }[]
  expect(cause?.command).toBe(`outboxd replay --state rejected --cause ${cause?.cause}`)
  const { printed } = await run([], { state: 'rejected', cause: cause?.cause ?? '', yes: true, json: true })
  expect(JSON.parse(printed).replayed.sort()).toEqual(mine.sort())
  expect(await fixture.ledger.countStates()).toEqual({ queued: 2, rejected: 1 })
})
