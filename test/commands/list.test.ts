import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ListOptions, list } from '../../src/commands/list.ts'
import { type Fixture, failedE003, openFixture, uncertain } from './fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())
beforeEach(() => fixture.reset())

async function run(options: ListOptions) {
  const context = fixture.context()
  const code = await list(context, options)
  return { code, printed: context.printed(), messages: context.messages() }
}

test('with nothing waiting for a person it says so, prints nothing and leaves with 3', async () => {
  await fixture.end({ state: 'completed' })
  expect(await run({})).toEqual({ code: 3, printed: '', messages: 'No submission waits for a person.\n' })
  expect((await run({ json: true })).printed).toBe('[]\n')
})

test('without --state it lists what waits for a person, longest waiting first, and never a payload', async () => {
  await fixture.end(failedE003, { outboxId: '41', payload: '{"secret":1}' })
  await fixture.end(uncertain, { outboxId: '42' })
  await fixture.end({ state: 'completed' }, { outboxId: '43' })
  await fixture.end({ state: 'queued' }, { outboxId: '44' })
  const { code, printed } = await run({})
  expect(code).toBe(0)
  const lines = printed.trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  expect(lines[1]).toMatch(/ 41 +data +- +failed +E003 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ +- +the service was down$/)
  expect(lines[2]).toContain('uncertain')
  expect(printed).not.toContain('secret')
})

test('each filter narrows the list', async () => {
  await fixture.end(failedE003, { outboxId: 'a', type: 'order', key: 'k1' })
  await fixture.end({ state: 'failed', errorCode: 'E001', error: 'unknown customer' }, { outboxId: 'b' })
  await fixture.end({ state: 'accepted', pollInMs: 0, transactionId: 't' }, { outboxId: 'd', key: 'k3' })
  await fixture.end({ state: 'queued' }, { outboxId: 'c', key: 'k2' })
  const ids = async (options: ListOptions) => {
    const { printed } = await run({ ...options, json: true })
    return (JSON.parse(printed) as { outboxId: string }[]).map(({ outboxId }) => outboxId)
  }
  expect(await ids({})).toEqual(['a', 'b'])
  expect(await ids({ code: 'e003' })).toEqual(['a'])
  expect(await ids({ type: 'data' })).toEqual(['b'])
  expect(await ids({ key: 'k1' })).toEqual(['a'])
  expect(await ids({ state: 'queued,accepted' })).toEqual(['d', 'c'])
  expect(await ids({ since: '1h' })).toEqual(['a', 'b'])
  expect(await ids({ until: '1h' })).toEqual([])
  expect(await ids({ state: 'queued', since: '1h' })).toEqual(['c'])
})

test('the time is that of the state: a record that failed long ago is not found by --since', async () => {
  const id = await fixture.end(failedE003)
  await fixture.ledger.pool.query(`update outboxd.submission set ended_at = now() - interval '5 hours' where id = $1`, [
    id,
  ])
  expect((await run({ since: '2h' })).code).toBe(3)
  expect((await run({ since: '6h', until: '4h' })).code).toBe(0)
})

test('it says when there are more than it shows', async () => {
  for (let i = 0; i < 3; i++) await fixture.end(failedE003)
  const { printed, messages } = await run({ limit: '2', json: true })
  expect(JSON.parse(printed)).toHaveLength(2)
  expect(messages).toContain('There are more')
  expect((await run({ limit: '3' })).messages).toBe('')
})

test('JSON has the whole id, ISO times and nulls', async () => {
  const id = await fixture.end(uncertain, { outboxId: '7' })
  const { printed } = await run({ json: true })
  expect(JSON.parse(printed)).toEqual([
    {
      id,
      outboxId: '7',
      type: 'data',
      key: null,
      state: 'uncertain',
      code: null,
      since: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      mayHaveArrived: false,
      error: 'no answer; it may have arrived',
    },
  ])
})

test('what may have arrived although it failed is noted', async () => {
  const id = await fixture.end({ state: 'failed', error: '500 four times', mayHaveArrived: true })
  expect((await run({})).printed).toMatch(/failed .* may have arrived +500 four times/)
  expect(JSON.parse((await run({ json: true })).printed)).toMatchObject([{ id, mayHaveArrived: true }])
})

test('a wrong filter is explained and leaves with 2, before any database is asked', async () => {
  const context = fixture.context(null, { DATABASE_URL: 'postgres://nowhere.invalid/x' })
  expect(await list(context, { state: 'faild' })).toBe(2)
  expect(context.messages()).toContain('did you mean "failed"?')
})
