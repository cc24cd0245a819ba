import { describe, expect, test } from 'vitest'
import { command as list } from '../../src/commands/list.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import type { GivenChange } from '../support/change.ts'
import { failedE003, openFixtureForFile, payloadOf, uncertain } from './fixture.ts'

const fixture = openFixtureForFile()

async function run(options: OptionsOf<typeof list>) {
  const context = fixture.context()
  const code = await list.action(context, options)
  return { code, printed: context.printed(), messages: context.messages() }
}

test('if no record needs attention, list says so, prints nothing and exits with 3', async () => {
  await fixture.end({ state: 'completed' })
  expect(await run({})).toEqual({ code: 3, printed: '', messages: 'No record needs attention.\n' })
  expect((await run({ json: true })).printed).toBe('[]\n')
})

test('without --state, list shows the records that need attention, oldest first, and never a payload', async () => {
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
  const ids = async (options: OptionsOf<typeof list>) => {
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

test('--since and --until compare the time since when a record has its state', async () => {
  const id = await fixture.end(failedE003)
  await fixture.ledger.pool.query(`update outboxd.submission set ended_at = now() - interval '5 hours' where id = $1`, [
    id,
  ])
  expect((await run({ since: '2h' })).code).toBe(3)
  expect((await run({ since: '6h', until: '4h' })).code).toBe(0)
})

test('list says if --limit cut the list', async () => {
  for (let i = 0; i < 3; i++) await fixture.end(failedE003)
  const { printed, messages } = await run({ limit: '2', json: true })
  expect(JSON.parse(printed)).toHaveLength(2)
  expect(messages).toBe('Only the first 2 are listed. --limit shows more.\n')
  expect((await run({ limit: '3' })).messages).toBe('')
})

test('--newest lists the newest first', async () => {
  await fixture.end(failedE003, { outboxId: '1' })
  await fixture.end(failedE003, { outboxId: '2' })
  await fixture.end(failedE003, { outboxId: '3' })
  const ids = async (options: OptionsOf<typeof list>) =>
    JSON.parse((await run({ ...options, json: true })).printed).map(({ outboxId }: { outboxId: string }) => outboxId)
  expect(await ids({})).toEqual(['1', '2', '3'])
  expect(await ids({ newest: true, limit: '2' })).toEqual(['3', '2'])
})

test('--transaction and --containing find records in any state, and combine with other filters', async () => {
  await fixture.end(
    { state: 'completed', transactionId: 'tx-1' },
    { outboxId: '1', payload: payloadOf({ field2: '"Müller"' }) },
  )
  await fixture.end(failedE003, { outboxId: '2', payload: '{"name":"M\\u00fcller"}', key: 'C-42' })
  const ids = async (options: OptionsOf<typeof list>) =>
    JSON.parse((await run({ ...options, json: true })).printed).map(({ outboxId }: { outboxId: string }) => outboxId)
  expect(await ids({ transaction: 'tx-1' })).toEqual(['1'])
  expect(await ids({ transaction: 'tx-1', state: 'failed' })).toEqual([])
  const beginning = fixture.context()
  expect(await list.action(beginning, { transaction: 'tx' })).toBe(3)
  expect(beginning.messages()).toBe('No record matches.\n')
  expect(await ids({ containing: 'müller' })).toEqual(['1', '2'])
  expect(await ids({ containing: 'müller', state: 'failed' })).toEqual(['2'])
  expect(await ids({ containing: 'c-42' })).toEqual(['2'])
  expect(await run({ containing: '100%' })).toMatchObject({
    code: 3,
    messages: 'No record matches.\n',
  })
})

test('JSON has the whole id, ISO times and nulls', async () => {
  const id = await fixture.end(uncertain, { outboxId: '7' })
  const { printed } = await run({ json: true })
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/)
  expect(JSON.parse(printed)).toEqual([
    {
      id,
      outboxId: '7',
      type: 'data',
      key: null,
      state: 'uncertain',
      code: null,
      since: time,
      mayHaveArrived: false,
      error: 'no answer; it may have arrived',
      transactionId: null,
      idempotencyKey: expect.stringMatching(/^[0-9a-f-]{36}$/),
      attempts: 1,
      recorded: time,
      captured: time,
      sent: time,
      accepted: null,
      ended: time,
    },
  ])
})

test('a failed record that may have arrived is marked', async () => {
  const id = await fixture.end({ state: 'failed', error: '500 four times', mayHaveArrived: true })
  expect((await run({})).printed).toMatch(/failed .* may have arrived +500 four times/)
  expect(JSON.parse((await run({ json: true })).printed)).toMatchObject([{ id, mayHaveArrived: true }])
})

test('an invalid filter is explained and exits with 2 before the database is asked', async () => {
  const context = fixture.context(null, { DATABASE_URL: 'postgres://nowhere.invalid/x' })
  expect(await list.action(context, { state: 'faild' })).toBe(2)
  expect(context.messages()).toContain('did you mean "failed"?')
})

describe('--by-cause', () => {
  const E001 = (customer: string): GivenChange => ({
    state: 'rejected',
    errorCode: 'E001',
    error: `the service answered 400 E001: customer ${customer} is unknown`,
  })
  const causes = async (options: OptionsOf<typeof list> = {}) =>
    JSON.parse((await run({ ...options, byCause: true, json: true })).printed) as {
      cause: string
      count: number
      reason: string
      command: string
    }[]

  test('records whose errors differ only in values share one line', async () => {
    await fixture.end(failedE003)
    for (const customer of ['C1', 'K-4711', '12']) await fixture.end(E001(customer), { outboxId: customer })
    const { code, printed, messages } = await run({ byCause: true })
    expect(code).toBe(0)
    const [, first, second, ...others] = printed.trimEnd().split('\n')
    expect(first).toMatch(
      /^3 +E001 +rejected +\d{4}-.*Z +data +the service answered 400 E001: customer … is unknown +outboxd replay --state rejected --cause [0-9a-f]{8}$/,
    )
    expect(second).toMatch(/^1 +E003 +failed /)
    expect(others).toEqual([])
    expect(messages).toContain('Before you replay, fix the cause')
    expect(await causes()).toMatchObject([{ count: 3, firstOutboxId: 'C1', types: ['data'] }, { count: 1 }])
  })

  test('errors of different fields are different causes', async () => {
    const refused = async (error: string) => fixture.end({ state: 'rejected', error })
    await refused('field1 (from a) is not one of red, blue: "bleu"')
    await refused('field2 (from b) is not one of red, blue: "bleu"')
    await refused('field2 (from b) is not one of red, blue: "gre')
    await refused('v has 9 digits before the point, decimal(10,2) takes 8: "100000000"')
    await refused('v has 10 digits before the point, decimal(10,2) takes 8: "1000000000"')
    await refused('v has 12 characters, at most 10 are allowed: "…"')
    await refused('v is not a plain number like 1234.50: "12,5"')
    expect((await causes()).map(({ count, reason }) => [count, reason])).toEqual([
      [2, 'field2 (from b) is not one of red, blue: "…"'],
      [2, 'v has … digits before the point, decimal(10,2) takes 8: "…"'],
      [1, 'field1 (from a) is not one of red, blue: "…"'],
      [1, 'v has … characters, at most 10 are allowed: "…"'],
      [1, 'v is not a plain number like 1234.50: "…"'],
    ])
  })

  test('uncertain records come first, however few', async () => {
    for (const outboxId of ['1', '2']) await fixture.end(E001('C1'), { outboxId })
    await fixture.end(uncertain)
    expect((await causes()).map(({ count, command }) => [count, /--state (\w+)/.exec(command)?.[1]])).toEqual([
      [1, 'uncertain'],
      [2, 'rejected'],
    ])
  })

  test('the printed command matches exactly the records of the line, within the given filters', async () => {
    const mine = [await fixture.end(E001('C1')), await fixture.end(E001('C2'))]
    await fixture.end(E001('C3'), { type: 'order' })
    await fixture.end({ ...E001('C4'), mayHaveArrived: true })
    const [cause] = await causes({ type: 'data' })
    expect(cause?.command).toBe(`outboxd replay --state rejected --cause ${cause?.cause} --type data`)
    const found = await run({ state: 'rejected', cause: cause?.cause ?? '', type: 'data', json: true })
    expect(JSON.parse(found.printed).map(({ id }: { id: string }) => id)).toEqual(mine)
  })

  test('for records that may have arrived, the printed command makes a file of questions', async () => {
    await fixture.end(uncertain)
    await fixture.end({ ...E001('C4'), mayHaveArrived: true })
    expect((await run({ byCause: true })).messages).not.toContain('replay')
    for (const { command } of await causes())
      expect(command).toMatch(
        /^outboxd list --state \w+ --cause \w+ --csv > ask.csv, fill in arrived_as, then outboxd resolve --file ask.csv$/,
      )
  })

  test('changes of documents that were sent are a line of their own, and not one that asks whether they arrived', async () => {
    const version = { document: '5', key: '5' }
    await fixture.end({ state: 'completed', transactionId: 'tx-1' }, { ...version, outboxId: '1' })
    await fixture.ledger.capture([{ ...version, payload: '{"amount":2}', outboxId: '2', body: '{}' }], 'once')
    expect((await causes()).map(({ command }) => command)).toEqual([
      expect.stringMatching(/^outboxd list --state rejected --cause \w+, then outboxd show each$/),
    ])
  })

  test('if no record needs attention, --by-cause says so and exits with 3', async () => {
    expect(await run({ byCause: true })).toEqual({
      code: 3,
      printed: '',
      messages: 'No record needs attention.\n',
    })
    expect((await run({ byCause: true, csv: true })).code).toBe(2)
  })
})

test('--csv escapes formulas and control characters, and has a column for the answer', async () => {
  const id = await fixture.end({ ...uncertain, error: 'no answer, "lost"' }, { outboxId: '=1+1', key: '@k' })
  const { code, printed } = await run({ state: 'uncertain', csv: true })
  expect(code).toBe(0)
  const [head, row] = printed.trimEnd().split('\n')
  expect(head).toBe(
    'outbox_id,arrived_as,state,type,key,sent,idempotency_key,attempts,transaction_id,code,error,since,recorded,submission_id',
  )
  expect(row).toMatch(/^'=1\+1,,uncertain,data,'@k,\d{4}-.*Z,[0-9a-f-]{36},1,,,"no answer, ""lost"{3},/)
  expect(row?.endsWith(id)).toBe(true)
  expect((await run({ state: 'failed', csv: true })).code).toBe(3)
  await fixture.end({ ...failedE003, error: 'bad\u001b[2Kgood' })
  expect((await run({ state: 'failed', csv: true })).printed).toContain('bad\\u001b[2Kgood')
})
