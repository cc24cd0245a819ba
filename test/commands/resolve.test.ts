import { describe, expect, test } from 'vitest'
import { command as discard } from '../../src/commands/discard.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { resolveAsNotArrived } from '../../src/ledger/operator/resolveSubmission.ts'
import { json, startServer } from '../service/support.ts'
import type { GivenChange } from '../support/change.ts'
import { claim, countFree, setSettings, spendLimit } from '../support/ledger.ts'
import { until } from '../support/until.ts'
import { failedE003, openFixtureForFile, payloadOf, uncertain } from './fixture.ts'

const fixture = openFixtureForFile()

/** A service that knows these transactions and orders. @param known its answers, by id */
async function service(known: Record<string, object>) {
  const { received, url } = await startServer(({ url: path }, response) => {
    if (path.endsWith('/oauth/token')) return json(response, 200, { access_token: 'abc', expires_in: 3600 })
    const answer = known[path.split('/').at(-1) ?? '']
    return answer ? json(response, 200, answer) : json(response, 404, { message: 'no such transaction' })
  })
  return {
    asked: () => received.filter(({ method }) => method === 'GET').map(({ url: path }) => path),
    env: envOf(url),
  }
}

const envOf = (url: string) => ({
  SERVICE_BASE_URL: url,
  SERVICE_AUTH_URL: url,
  SERVICE_CLIENT_ID: 'client',
  SERVICE_CLIENT_SECRET: 'secret',
})

async function run(
  name: string,
  options: OptionsOf<typeof resolve>,
  { env = {}, input = null }: { env?: Record<string, string>; input?: string | null } = {},
) {
  const context = fixture.context(input, env)
  const code = await resolve.action(context, name, options)
  return { code, printed: context.printed(), messages: context.messages() }
}

const unchecked = { unchecked: true, yes: true }

describe('--arrived', () => {
  test('the record is accepted, and a poll is due at once', async () => {
    const { env, asked } = await service({ 'tx-9': { transactionId: 'tx-9', status: 'pending' } })
    const id = await fixture.end(uncertain, { outboxId: '1' })
    const { code, messages } = await run('outbox:1', { arrived: 'tx-9' }, { env })
    expect(messages).toContain('the service says that transaction tx-9 is pending')
    expect(code).toBe(0)
    expect(asked()).toEqual(['/api/v1/data/tx-9'])
    const row = await fixture.ledger.row(id)
    expect(row).toMatchObject({
      state: 'accepted',
      transaction_id: 'tx-9',
      id_by_person: true,
      error: null,
      ended_at: null,
      report_due: true,
    })
    // accepted_at is the time of sending, because a late poll must not teach that processing is quick.
    expect(row.accepted_at).toEqual(row.sent_at)
    expect(await fixture.ledger.polled()).toEqual([row.id])
    expect((await fixture.ledger.events(id)).at(-1)).toBe('uncertain -> accepted: resolved: arrived as tx-9')
    const { polls } = await claim(fixture.ledger.dispatch(), { polls: 1 })
    expect(polls.map(({ submission }) => submission.transactionId)).toEqual(['tx-9'])
  })

  test('a record whose mapping does not track is completed', async () => {
    const { env } = await service({ 'tx-9': { transactionId: 'tx-9', status: 'completed' } })
    const id = await fixture.end(uncertain, { tracked: false })
    expect((await run(id, { arrived: 'tx-9' }, { env })).code).toBe(0)
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'completed', transaction_id: 'tx-9' })
    expect(await fixture.ledger.polled()).toEqual([])
  })

  test('the service is asked for an order at the path of orders, and each request counts', async () => {
    const { env, asked } = await service({ 'o-1': { orderId: 'o-1', status: 'completed' } })
    const id = await fixture.end(uncertain, { resource: 'orders' })
    const { messages } = await run(id, { arrived: 'o-1' }, { env })
    expect(messages).toContain('order o-1 is completed')
    expect(asked()).toEqual(['/api/v1/orders/o-1'])
    expect(await fixture.answeredRequests()).toBe(2)
  })

  test('a transaction that the service failed is reported, and the record is settled', async () => {
    const { env } = await service({ 'tx-9': { transactionId: 'tx-9', status: 'failed', errorCode: 'E001' } })
    const id = await fixture.end(uncertain)
    const { code, messages } = await run(id, { arrived: 'tx-9' }, { env })
    expect(messages).toContain('transaction tx-9 is failed with E001')
    expect(code).toBe(0)
  })

  /** Runs the command until it waits for a free request. */
  async function untilWaiting(id: string, arrived: string, env: Record<string, string>) {
    const context = fixture.context(null, env)
    const code = resolve.action(context, id, { arrived })
    await until(context.messages, (messages) => messages.includes('Waiting for a free request'))
    return { context, code }
  }

  test('a spent budget is waited for, and the requests that become free first are not for daemons', async () => {
    const { env, asked } = await service({ 'tx-9': { transactionId: 'tx-9', status: 'pending' } })
    const id = await fixture.end(uncertain)
    const { pool } = fixture.ledger
    await spendLimit(pool)
    const { code } = await untilWaiting(id, 'tx-9', env)
    for (const overRows of [1, 2]) {
      // The row that waits, and then also the answered request for the token.
      await until(fixture.answeredRequests, (rows) => rows === overRows)
      await pool.query(
        'delete from outboxd.request where id = (select min(id) from outboxd.request where over_at > now())',
      )
      expect(await countFree(pool)).toBe(0)
    }
    expect(await code).toBe(0)
    expect(asked()).toEqual(['/api/v1/data/tx-9'])
  })

  describe('is refused, and nothing changes:', () => {
    async function refused(id: string, arrived: string, env: Record<string, string>) {
      const before = await fixture.ledger.row(id)
      const { code, messages } = await run(id, { arrived }, { env })
      expect(code).toBe(1)
      expect(await fixture.ledger.row(id)).toEqual(before)
      expect(await fixture.ledger.polled()).toEqual([])
      return messages
    }

    test('an id that the service does not know', async () => {
      const { env } = await service({})
      const messages = await refused(await fixture.end(uncertain), 'tx-8', env)
      expect(messages).toContain('the service does not know transaction tx-8')
      expect(messages).toContain('--unchecked')
    })

    test('an unknown status, and its control characters do not reach the terminal', async () => {
      const { env } = await service({ 'tx-8': { transactionId: 'tx-8', status: 'odd\u001b[31m' } })
      const messages = await refused(await fixture.end(uncertain), 'tx-8', env)
      expect(messages).toContain('gave tx-8 an unknown status: odd\\u001b[31m')
      expect(messages).not.toContain('\u001b')
    })

    test('an id to which the service answers with a different id', async () => {
      const { env } = await service({ 'tx-8': { transactionId: 'tx-9', status: 'completed' } })
      expect(await refused(await fixture.end(uncertain), 'tx-8', env)).toContain('answered about tx-9')
    })

    test('while the service cannot be reached', async () => {
      const messages = await refused(await fixture.end(uncertain), 'tx-8', envOf('http://127.0.0.1:1'))
      expect(messages).toContain('that the service answers')
    })

    test('while no request of the budget is free, which says nothing about the id', async () => {
      const { env, asked } = await service({ 'tx-8': { transactionId: 'tx-8', status: 'completed' } })
      const id = await fixture.end(uncertain)
      await spendLimit(fixture.ledger.pool)
      const { context, code } = await untilWaiting(id, 'tx-8', env)
      context.abort()
      expect(await code).toBe(1)
      expect(context.messages()).toContain('The service was not asked, so nothing was changed')
      expect(context.messages()).not.toMatch(/Check the id|--unchecked/)
      expect((await fixture.ledger.row(id)).state).toBe('uncertain')
      expect(asked()).toEqual([])
    })

    test('an id of another record, which is named', async () => {
      const { env, asked } = await service({ 'tx-8': { transactionId: 'tx-8', status: 'completed' } })
      await fixture.end({ state: 'completed', transactionId: 'tx-8' }, { outboxId: '77' })
      const messages = await refused(await fixture.end(uncertain), 'tx-8', env)
      expect(messages).toContain('tx-8 is the transaction of outbox:77 (`outboxd show outbox:77`)')
      expect(asked()).toEqual([])
      const again = await run((await lastUncertain()) ?? '', { arrived: 'tx-8', ...unchecked })
      expect(again.code).toBe(1)
    })
  })

  async function lastUncertain() {
    const { rows } = await fixture.ledger.pool.query<{ id: string }>(
      `select id from outboxd.submission where state = 'uncertain' order by seq desc limit 1`,
    )
    return rows[0]?.id
  }

  test('--unchecked asks for confirmation instead of asking the service', async () => {
    const id = await fixture.end(uncertain)
    expect((await run(id, { arrived: 'tx-8', unchecked: true })).code).toBe(4)
    expect((await run(id, { arrived: 'tx-8', unchecked: true }, { input: 'n\n' })).code).toBe(4)
    expect((await fixture.ledger.row(id)).state).toBe('uncertain')
    expect((await run(id, { arrived: 'tx-8', unchecked: true }, { input: 'y\n' })).code).toBe(0)
    expect((await fixture.ledger.row(id)).state).toBe('accepted')
  })

  test.each([
    'null',
    'undefined',
    'None',
    'NaN',
    '-',
    '...',
    'n/a',
    'yes',
    'Arrived',
    'not-arrived',
  ])('%s is not an id: exits with 2', async (arrived) => {
    const id = await fixture.end(uncertain)
    expect((await run(id, { arrived, ...unchecked })).code).toBe(2)
    expect((await fixture.ledger.row(id)).state).toBe('uncertain')
  })
})

describe('--not-arrived', () => {
  test('the record is queued again under its key, with an attempt in doubt, because operators err', async () => {
    const id = await fixture.end({ ...uncertain, serverErrors: 2 })
    const before = await fixture.ledger.row(id)
    const { code, messages } = await run(id, { notArrived: true })
    expect(code).toBe(0)
    expect(messages).toContain('queued again, under the same idempotency key')
    const after = await fixture.ledger.row(id)
    expect(after).toMatchObject({
      state: 'queued',
      held: false,
      in_doubt: true,
      server_errors: 0,
      body: before.body,
      report_due: true,
    })
    expect(after.idempotency_key).toBe(before.idempotency_key)
    expect((await fixture.ledger.events(id)).at(-1)).toBe('uncertain -> queued: resolved: not arrived')
  })

  test('on a terminal, `resolve --not-arrived` asks first', async () => {
    const id = await fixture.end(uncertain, { outboxId: '1' })
    const other = await fixture.end(uncertain, { outboxId: '2' })
    const before = await fixture.ledger.row(id)
    const refused = await run(id, { notArrived: true }, { input: 'n\n' })
    expect(refused.code).toBe(4)
    expect(refused.messages).toContain('Send outbox:1 again? If it did arrive, the service may have it twice. [y/N]')
    expect(await run(id, { notArrived: true, dryRun: true }, { input: 'n\n' })).toMatchObject({ code: 0, messages: '' })
    expect(await fixture.ledger.row(id)).toEqual(before)
    expect((await run(id, { notArrived: true }, { input: 'y\n' })).code).toBe(0)
    expect((await fixture.ledger.row(id)).state).toBe('queued')
    expect((await run(other, { notArrived: true, yes: true }, { input: 'n\n' })).messages).not.toContain('[y/N]')
    expect((await fixture.ledger.row(other)).state).toBe('queued')
  })

  test('--new-key gives the record a new key', async () => {
    const id = await fixture.end(uncertain)
    const before = await fixture.ledger.row(id)
    expect((await run(id, { notArrived: true, newKey: true })).messages).toContain('under a new idempotency key')
    expect((await fixture.ledger.row(id)).idempotency_key).not.toBe(before.idempotency_key)
  })

  test.each<[string, GivenChange]>([
    ['uncertain', uncertain],
    ['polled for its id', { state: 'sending', transactionId: 'tx-1', pollInMs: 60_000 }],
    ['accepted, and no answer was usable', { state: 'accepted', transactionId: 'tx-1', pollInMs: 0 }],
    ['failed, and may have arrived', { state: 'failed', error: '500', mayHaveArrived: true }],
    ['rejected, and may have arrived', { state: 'rejected', error: '408', mayHaveArrived: true }],
  ])('a record that is %s keeps its key, because the service may have it under that key', async (_, change) => {
    const id = await fixture.end(change)
    const { idempotency_key } = await fixture.ledger.row(id)
    expect((await run(id, { notArrived: true })).messages).toContain('under the same idempotency key')
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', in_doubt: true, idempotency_key })
  })

  test('the record gets a new key if the service has processed the transaction of its former key', async () => {
    const id = await fixture.end({ ...uncertain, errorCode: 'E002', doneMs: 900 })
    const before = await fixture.ledger.row(id)
    await run(id, { notArrived: true })
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', in_doubt: true })
    expect((await fixture.ledger.row(id)).idempotency_key).not.toBe(before.idempotency_key)
  })

  test('before a record that the service itself called completed is sent again, the question says so', async () => {
    const id = await fixture.end({ ...uncertain })
    await run(id, { arrived: 'tx-1', ...unchecked })
    const question =
      /is completed as tx-1, an id that an operator gave\. The service itself says that tx-1 is completed\. Drop/
    await fixture.ledger.pool.query(
      `update outboxd.submission set state = 'completed', ended_at = now(), done_ms = 5 where id = $1`,
      [id],
    )
    const { code, messages } = await run(id, { notArrived: true })
    expect(code).toBe(4)
    expect(messages).toMatch(question)
    expect((await run(id, { notArrived: true }, { input: 'y\n' })).messages).toMatch(question)
    expect((await fixture.ledger.row(id)).state).toBe('queued')
  })

  test('an older version of a document is not sent after a newer one', async () => {
    const ofDocument = { document: '5', key: '5' }
    const id = await fixture.end(
      { state: 'failed', error: '500', mayHaveArrived: true },
      { ...ofDocument, outboxId: '1' },
    )
    await fixture.end({ state: 'completed', transactionId: 'tx-2' }, { ...ofDocument, outboxId: '2', body: '{}' })
    const { code, messages } = await run(id, { notArrived: true })
    expect(code).toBe(1)
    expect(messages).toContain('outbox:1 is older than outbox:2, the newest version of its document')
    expect((await fixture.ledger.row(id)).state).toBe('failed')
  })

  test.each([
    ['is listed', null, (id: string) => `outboxd replay outbox:${id}`],
    ['was discarded by a person', 'discard', (id: string) => `outboxd replay outbox:${id} --discarded`],
  ] as const)('after its document changed, and the change %s, the advice sends the change', async (_, given, advised) => {
    const ofDocument = { document: '5', key: '5' }
    const id = await fixture.end(uncertain, { ...ofDocument, outboxId: '1' })
    const changed = { ...ofDocument, outboxId: '2', payload: payloadOf({ field2: '"y"' }), body: '{}' }
    const [newer = ''] = await fixture.ledger.capture([changed], 'once')
    const giveUp = (name: string) => discard.action(fixture.context(), [name], { reason: 'did not arrive' })
    if (given === 'discard') await giveUp(newer)
    const message = `Discard it instead, then \`${advised('2')}\` sends the newest version`
    expect((await run(id, { notArrived: true })).messages).toContain(message)
    const context = fixture.context()
    await resolve.action(context, undefined, { notArrived: true, state: 'uncertain', yes: true })
    expect(context.messages()).toContain(message)
    expect(await giveUp(id)).toBe(0)
    expect(await replay.action(fixture.context(), ['outbox:2'], { discarded: given === 'discard' })).toBe(0)
    expect(await fixture.ledger.row(newer)).toMatchObject({ state: 'queued', held: false })
  })

  test('after its document was deleted, it is not sent', async () => {
    const ofDocument = { document: '5', key: '5' }
    const id = await fixture.end(uncertain, { ...ofDocument, outboxId: '1' })
    await fixture.ledger.capture(
      [{ ...ofDocument, outboxId: '2', resource: null, payload: null, body: null, discarded: '5 was deleted' }],
      'once',
    )
    const { code, messages } = await run(id, { notArrived: true })
    expect(code).toBe(1)
    expect(messages).toMatch(/only that is sent\. Discard it instead$/m)
  })

  test('after E002 the message advises --new-key', async () => {
    const id = await fixture.end({ ...uncertain, errorCode: 'E002' })
    expect((await run(id, { notArrived: true })).messages).toContain('add --new-key')
  })
})

test('the next record of its key waits after --not-arrived, and goes on after --arrived', async () => {
  const first = await fixture.end(uncertain, { key: 'k' })
  const second = await fixture.end({ state: 'queued' }, { key: 'k' })
  expect((await fixture.ledger.row(second)).held).toBe(true)
  await run(first, { notArrived: true })
  expect((await fixture.ledger.row(second)).held).toBe(true)

  const other = await fixture.ledger.capture([{ key: 'l' }, { key: 'l' }])
  await fixture.ledger.pool.query(
    `update outboxd.submission set state = 'uncertain', due_at = null, ended_at = now() where id = $1`,
    [other[0]],
  )
  await run(other[0] ?? '', { arrived: 'tx', ...unchecked })
  expect((await fixture.ledger.row(other[1] ?? '')).held).toBe(false)
})

describe('beside uncertain records, resolve settles', () => {
  const lost: GivenChange = {
    state: 'failed',
    error: '404 for ten minutes',
    transactionId: 'tx-1',
    mayHaveArrived: true,
  }

  test('a failed record that may have arrived', async () => {
    const id = await fixture.end(lost)
    expect((await run(id, { arrived: 'tx-2', ...unchecked })).code).toBe(0)
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'accepted', may_have_arrived: false })
    expect((await fixture.ledger.events(id)).at(-1)).toBe('failed -> accepted: resolved: arrived as tx-2')
  })

  test('an accepted record that was resolved wrongly, repeatedly, and its former poll is dropped', async () => {
    const id = await fixture.end(uncertain)
    await run(id, { arrived: 'tx-1', ...unchecked })
    await fixture.ledger.pool.query('update outboxd.submission set not_done_ms = 5') // of the other transaction, which is pending
    await run(id, { arrived: 'tx-2', ...unchecked })
    const row = await fixture.ledger.row(id)
    expect(row).toMatchObject({ state: 'accepted', transaction_id: 'tx-2', not_done_ms: null })
    expect(await fixture.ledger.polled()).toEqual([row.id])
    await run(id, { notArrived: true })
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', transaction_id: null, id_by_person: false })
    expect(await fixture.ledger.polled()).toEqual([])
  })

  test('an accepted record that never had a usable answer', async () => {
    const id = await fixture.end({ state: 'accepted', transactionId: 'tx-1', pollInMs: 0 })
    expect((await run(id, { arrived: 'tx-2', ...unchecked })).code).toBe(0)
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'accepted', transaction_id: 'tx-2' })
  })

  test('but no record that the service is processing', async () => {
    const id = await fixture.end({ state: 'accepted', transactionId: 'tx-1', pollInMs: 0, notDoneMs: 900 })
    const { code, messages } = await run(id, { arrived: 'tx-2', ...unchecked })
    expect(code).toBe(1)
    expect(messages).toContain('the service gave its id and works on it')
  })
})

describe('--dry-run', () => {
  const stated: GivenChange = {
    state: 'failed',
    error: '404 for ten minutes',
    transactionId: 'tx-1',
    mayHaveArrived: true,
  }

  test.each<[string, GivenChange, OptionsOf<typeof resolve>, string]>([
    [
      'arrived',
      uncertain,
      { arrived: 'tx-9' },
      'uncertain. This would track it as tx-9, if the service knows that id.',
    ],
    [
      'unchecked',
      uncertain,
      { arrived: 'tx-9', unchecked: true },
      'would track it as tx-9, without asking the service.',
    ],
    ['not arrived', stated, { notArrived: true }, 'failed. This would send it again, under its idempotency key'],
    ['new key', uncertain, { notArrived: true, newKey: true }, 'would send it again, under a new idempotency key.'],
  ])('%s: prints what would change, without asking the service or changing anything', async (_, change, options, said) => {
    const { env, asked } = await service({ 'tx-9': { transactionId: 'tx-9', status: 'pending' } })
    const id = await fixture.end(change, { outboxId: '1' })
    const before = await fixture.ledger.row(id)
    const { code, printed } = await run('outbox:1', { ...options, dryRun: true }, { env })
    expect({ code, printed }).toEqual({ code: 0, printed: expect.stringMatching(/^outbox:1 is .*\.\n$/) })
    expect(printed).toContain(said)
    expect(asked()).toEqual([])
    expect(await fixture.ledger.row(id)).toEqual(before)
  })

  test('a record that could not be settled is refused', async () => {
    await fixture.end({ state: 'completed', transactionId: 'tx-8' }, { outboxId: '77' })
    const id = await fixture.end(uncertain)
    const taken = await run(id, { arrived: 'tx-8', dryRun: true })
    expect({ code: taken.code, printed: taken.printed }).toEqual({ code: 1, printed: '' })
    expect(taken.messages).toContain('tx-8 is the transaction of outbox:77')
    expect((await run('outbox:77', { notArrived: true, dryRun: true })).code).toBe(1)
  })

  test('--take-back names the id that would become free', async () => {
    const id = await fixture.end(uncertain, { outboxId: '1' })
    await run(id, { arrived: 'tx-1', ...unchecked })
    const { code, printed } = await run(id, { takeBack: true, dryRun: true })
    expect({ code, printed }).toEqual({
      code: 0,
      printed:
        'outbox:1 is accepted; its transaction id tx-1 was given by an operator. This would make it uncertain again, and free its transaction id for another record.\n',
    })
    expect(await fixture.ledger.row(id)).toMatchObject({ state: 'accepted', transaction_id: 'tx-1' })
  })
})

describe('--json', () => {
  async function printedBy(id: string, options: OptionsOf<typeof resolve>) {
    const { code, printed } = await run(id, { ...options, json: true })
    return { code, ...JSON.parse(printed) }
  }

  test('prints the columns of a file of answers, and the state', async () => {
    const id = await fixture.end(uncertain, { outboxId: '1' })
    const arrived = { id, outboxId: '1', arrivedAs: 'tx-1', state: 'accepted' }
    const word = { arrived: 'tx-1', ...unchecked }
    const none: unknown[] = []
    expect(await printedBy(id, { ...word, dryRun: true })).toEqual({
      ...{ code: 0, dryRun: true, settled: [arrived] },
      leftAlone: none,
    })
    expect(await printedBy(id, word)).toMatchObject({ dryRun: false, settled: [arrived] })
    expect(await printedBy(id, { notArrived: true })).toMatchObject({
      settled: [{ id, outboxId: '1', arrivedAs: null, state: 'queued' }],
    })
    const left = { id, outboxId: '1', reason: expect.stringContaining('is queued, not uncertain') }
    const refused = await printedBy(id, { notArrived: true })
    expect(refused).toMatchObject({ code: 1, settled: [] })
    expect(refused.leftAlone).toEqual([left])
  })
})

test('resolve refuses a change of a document that was sent, because the service would have both', async () => {
  const version = { document: '5', key: '5' }
  await fixture.end({ state: 'completed', transactionId: 'tx-1' }, { ...version, outboxId: '1' })
  const [id = ''] = await fixture.ledger.capture(
    [{ ...version, payload: '{"a":2}', outboxId: '2', body: '{}' }],
    'once',
  )
  const { code, messages } = await run(id, { notArrived: true })
  expect(code).toBe(1)
  expect(messages).toContain('is a change of a document that was sent before')
  expect((await fixture.ledger.row(id)).state).toBe('rejected')
})

test('resolve refuses a failed record that cannot have arrived, and exits with 3 for an unknown one', async () => {
  const id = await fixture.end(failedE003)
  const { code, messages } = await run(id, { notArrived: true })
  expect(code).toBe(1)
  expect(messages).toContain('is failed, not uncertain')
  expect((await run('outbox:none', { notArrived: true })).code).toBe(3)
})

test.each<OptionsOf<typeof resolve>>([
  {},
  { arrived: 'tx', notArrived: true },
  { arrived: ' ' },
  { arrived: 'tx 1' },
  { arrived: 'tx', newKey: true },
  { arrived: '--not-arrived' },
  { takeBack: true, notArrived: true },
  { notArrived: true, unchecked: true },
])('contradictory or incomplete options exit with 2: %j', async (options) => {
  const id = await fixture.end(uncertain)
  expect((await run(id, options)).code).toBe(2)
  expect((await fixture.ledger.row(id)).state).toBe('uncertain')
})

test('an operator can settle a record whose id is still being polled, and a record that is sent again keeps no poll', async () => {
  const asked = { state: 'sending', transactionId: 'tx-1', pollInMs: 60_000 } as const
  const arrived = await fixture.end(asked, { outboxId: '1' })
  expect((await run('outbox:1', { arrived: 'tx-1', ...unchecked })).code).toBe(0)
  expect(await fixture.ledger.row(arrived)).toMatchObject({ state: 'accepted', probing: false, transaction_id: 'tx-1' })
  const notArrived = await fixture.end({ ...asked, transactionId: 'tx-2' }, { outboxId: '2' })
  expect((await run('outbox:2', { notArrived: true, yes: true })).code).toBe(0)
  const queued = { state: 'queued', probing: false, transaction_id: null, in_doubt: true }
  expect(await fixture.ledger.row(notArrived)).toMatchObject(queued)
})

describe('--not-arrived while the last request may still arrive', () => {
  const sentAgo = (seconds: number) =>
    fixture.ledger.pool.query(`update outboxd.submission set sent_at = clock_timestamp() - $1 * interval '1 s'`, [
      seconds,
    ])

  test('is refused, also with filters and by a file, and says until when', async () => {
    const id = await fixture.end(uncertain, { outboxId: '1' })
    await setSettings(fixture.ledger.pool, { REQUEST_TIMEOUT_SECONDS: '20' })
    await sentAgo(22)
    const refused = await run(id, { notArrived: true })
    expect(refused).toMatchObject({ code: 1, messages: expect.stringContaining('outbox:1 may still arrive until ') })
    const filtered = fixture.context()
    expect(await resolve.action(filtered, undefined, { notArrived: true, type: 'data', yes: true })).toBe(1)
    expect(filtered.messages()).toContain('may still arrive until ')
    expect((await fixture.ledger.row(id)).state).toBe('uncertain')
    await sentAgo(23)
    expect((await run(id, { notArrived: true })).code).toBe(0)
  })

  test('is refused by the ledger, if the record was sent again since the preview', async () => {
    const id = await fixture.end(uncertain)
    await sentAgo(1)
    const { revision, key } = await fixture.ledger.row(id)
    const operator = { ledger: fixture.ledger.pool, actor: { who: 'operator test', reason: null, account: 'test' } }
    const seen = { id, revision: revision as number, key: key as string | null }
    expect(await resolveAsNotArrived(operator, [seen], false)).toEqual([])
  })

  test('is refused after a recovery until no lost request can arrive', async () => {
    const id = await fixture.end(uncertain)
    await fixture.ledger.pool.query(`update outboxd.ledger set spent_at = clock_timestamp() + interval '5 s'`)
    expect((await run(id, { notArrived: true })).messages).toContain('may still arrive until ')
  })
})

describe('--not-arrived with filters', () => {
  const uncertainSince = async (createdAt: string) => fixture.end(uncertain, { createdAt })

  test('settles the uncertain records that match, and no others', async () => {
    const [arrived, lost] = [await uncertainSince('2026-11-03T14:00:00Z'), await uncertainSince('2026-11-03T14:05:00Z')]
    const failed = await fixture.end({ state: 'failed', errorCode: 'E001', error: 'no' })
    const filter = { notArrived: true, createdSince: '2026-11-03T14:05Z' }
    const preview = fixture.context()
    expect(await resolve.action(preview, undefined, { ...filter, dryRun: true })).toBe(0)
    expect(preview.printed()).toContain('This would resolve 1 record')
    expect(preview.printed()).toContain('What did arrive, the service then has twice')
    expect(await resolve.action(fixture.context(), undefined, filter)).toBe(4)
    expect(await resolve.action(fixture.context('y\n'), undefined, filter)).toBe(0)
    const states = await Promise.all([arrived, lost, failed].map(async (id) => (await fixture.ledger.row(id)).state))
    expect(states).toEqual(['uncertain', 'queued', 'failed'])
  })

  test('is refused with an id, with --arrived, and for other states', async () => {
    const refused = async (name: string | undefined, options: object) => {
      const context = fixture.context()
      expect(await resolve.action(context, name, options)).toBe(2)
      return context.messages()
    }
    expect(await refused('outbox:1', { notArrived: true, type: 'data' })).toContain('filters need --not-arrived')
    expect(await refused(undefined, { arrived: 'T-1', type: 'data' })).toContain('filters need --not-arrived')
    expect(await refused(undefined, { notArrived: true, state: 'failed' })).toContain('it is not uncertain')
  })
})
