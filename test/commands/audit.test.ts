import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { beforeEach, expect, test } from 'vitest'
import { command as audit } from '../../src/commands/audit.ts'
import { command as discard } from '../../src/commands/discard.ts'
import { command as erase } from '../../src/commands/erase.ts'
import { command as pause } from '../../src/commands/pause.ts'
import { command as prune } from '../../src/commands/prune.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resume } from '../../src/commands/resume.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { mapOutboxRecord } from '../../src/mapping/mapRecord.ts'
import { addDecimals } from '../../src/operations/audit.ts'
import { setSettings } from '../support/ledger.ts'
import { failedE003, openFixtureForFile, payloadOf } from './fixture.ts'

const fixture = openFixtureForFile()
beforeEach(() => setSettings(fixture.ledger.pool, { RETENTION_DAYS: '90', RETENTION_PAYLOAD_DAYS: '30' }))

async function run(options: OptionsOf<typeof audit> = {}) {
  const context = fixture.context()
  const code = await audit.action(context, options)
  return { code, printed: context.printed(), messages: context.messages() }
}
const json = async (options: OptionsOf<typeof audit> = {}) =>
  JSON.parse((await run({ ...options, json: true })).printed)
const isRecord = ({ kind }: { kind: string }) => kind !== 'act'
const records = async (options: OptionsOf<typeof audit> = {}) => (await json(options)).filter(isRecord)

const completed = { state: 'completed', transactionId: 'tx-1', result: '{}' } as const
const mappings = loadMappings('mappings')

/** A record with the request that the daemon's mapper makes of it. */
function mappedRecord(fields: Record<string, string> = {}) {
  const payload = payloadOf(fields)
  const mapped = mapOutboxRecord(mappings, { type: 'data', payload, unreadable: null }, 'x')
  if (mapped.kind !== 'mapped') throw new Error(mapped.reason)
  return { payload, body: mapped.body, amounts: mapped.amounts }
}

const endedAt = (outboxId: string, at: string) =>
  fixture.ledger.pool.query('update outboxd.submission set ended_at = $2 where outbox_id = $1', [outboxId, at])

test('audit prints one line for each record: type, key, exact amounts, transaction, steps and outcome', async () => {
  await fixture.end(completed, { outboxId: '7', key: 'K1', ...mappedRecord({ amount: '1234567.10' }) })
  const [only, ...others] = await records()
  expect(others).toEqual([])
  expect(only).toMatchObject({
    ...{ kind: 'record', outboxId: '7', type: 'data', key: 'K1', state: 'completed', transactionId: 'tx-1' },
    amounts: { total_amount: '1234567.10' },
    steps: [{ from: null, to: 'queued', cause: 'captured' }, { to: 'sending' }, { to: 'completed' }],
    hands: [],
  })
  expect((await run()).printed).toMatch(
    /^\S+ \S+Z {2}completed {2}outbox:7 {2}data {2}key K1 {2}total_amount=1234567.10 {2}as tx-1/,
  )
})

test('audit lists operators’ acts with their records, and pauses between the records in order of time', async () => {
  const one = await fixture.end(failedE003, { outboxId: '1', ...mappedRecord() })
  await fixture.end({ state: 'rejected' }, { outboxId: '2', ...mappedRecord() })
  await replay.action(fixture.context(), [one], { as: 'alice', reason: 'ticket 1' })
  await pause.action(fixture.context(), { as: 'zoe', reason: 'closing', for: '1h' })
  await resume.action(fixture.context(), { as: 'zoe', reason: 'closed' })
  await discard.action(fixture.context(), ['outbox:2'], { as: 'bob', reason: 'entered twice' })
  const lines = await json({ since: '1h' })
  const ours = lines.filter(
    ({ kind, who }: { kind: string; who: string }) => kind === 'record' || who === 'operator zoe',
  )
  expect(ours).toMatchObject([
    { act: 'pause', reason: 'closing', until: expect.stringContaining('T') },
    { act: 'resume', reason: 'closed' },
    { outboxId: '2', state: 'discarded', hands: [{ who: 'operator bob', reason: 'entered twice' }] },
    {
      outboxId: '1',
      state: 'queued',
      ended: null,
      hands: [{ who: 'operator alice', cause: 'replayed', reason: 'ticket 1' }],
    },
  ])
  const { printed } = await run()
  expect(printed).toContain('operator bob: discarded: entered twice\n')
  expect(printed).toContain('operator alice: replayed (ticket 1)\n')
})

test('after a replay, audit shows the amounts of the last request, and the former ones in the steps', async () => {
  const id = await fixture.end(failedE003, { outboxId: '1', ...mappedRecord({ amount: '5' }) })
  await fixture.ledger.pool.query('update outboxd.submission set payload = $1', [payloadOf({ amount: '6.5' })])
  await replay.action(fixture.context(), [id], {})
  const [only] = await records()
  expect(only).toMatchObject({
    amounts: { total_amount: '6.50' },
    steps: [{ amounts: { total_amount: '5.00' } }, {}, {}, { amounts: { total_amount: '6.50' } }],
  })
})

test('a record is listed in the span in which it ended, and an open record only without --until', async () => {
  await fixture.end(completed, { outboxId: 'october' })
  await fixture.end(completed, { outboxId: 'november' })
  await fixture.end({ state: 'queued' }, { outboxId: 'open' })
  await endedAt('october', '2026-10-31T23:59:59.999Z')
  await endedAt('november', '2026-11-01T00:00:00Z')
  const ids = async (options: OptionsOf<typeof audit>) =>
    (await records(options)).map(({ outboxId }: { outboxId: string }) => outboxId)
  const [first, second] = ['2026-11-01T00:00Z', '2026-12-01T00:00Z'] as const
  expect(await ids({ until: first })).toEqual(['october'])
  expect(await ids({ since: first, until: second })).toContain('november')
  expect(await ids({ since: '2026-10-01T00:00Z', until: first })).toEqual(['october'])
  expect(await ids({})).toEqual(['october', 'november', 'open'])
})

test('--until leaves out open records, even if it is in the future', async () => {
  await fixture.end(completed, { outboxId: 'ended' })
  await fixture.end({ state: 'queued' }, { outboxId: 'open' })
  await pause.action(fixture.context(), { as: 'zoe', reason: 'closing' })
  expect(await json({ until: '2126-01-01' })).toMatchObject([{ outboxId: 'ended' }, { act: 'pause' }])
  expect(await records({ until: '2126-01-01', containing: 'C1' })).toMatchObject([{ outboxId: 'ended' }])
})

test('--key lists only records of that key, in the order of capture', async () => {
  for (const [outboxId, key] of [
    ['1', 'a'],
    ['2', 'b'],
    ['3', 'a'],
  ] as const)
    await fixture.end(completed, { outboxId, key })
  expect(await json({ key: 'a' })).toMatchObject([{ outboxId: '1' }, { outboxId: '3' }])
  expect((await run({ key: 'c' })).code).toBe(3)
})

test('audit lists several pages of records, each record once and in order', async () => {
  await fixture.ledger.pool.query(`insert into outboxd.submission (id, outbox_id, type, recorded_at, state, idempotency_key, ended_at)
    select gen_random_uuid(), n, 'data', now(), case when n % 2 = 0 then 'completed' else 'discarded' end, gen_random_uuid(),
      now() - n / 3 * interval '1 s' from generate_series(1, 450) n`)
  const lines = await records()
  expect(new Set(lines.map(({ outboxId }: { outboxId: string }) => outboxId)).size).toBe(450)
  const times = lines.map(({ ended }: { ended: string }) => ended)
  expect(times).toEqual([...times].sort())
  expect(lines).toHaveLength(450)
})

test('--csv is a table for a spreadsheet: hostile texts calculate nothing and break no line', async () => {
  await fixture.end(completed, { outboxId: '1', key: '=1+1\n"x",', ...mappedRecord() })
  const { printed } = await run({ csv: true })
  const rows: Record<string, string>[] = parse(printed, { columns: true })
  const record = rows.find(({ kind }) => kind === 'record')
  expect(record).toMatchObject({ outbox_id: '1', amounts: 'total_amount=12.30', outcome: 'completed' })
  expect(record?.key).toBe(`'=1+1\\u000a"x",`)
  expect(record?.steps).toMatch(/^\S+Z queued: captured; \S+Z sending: /)
})

test('--csv escapes formulas after semicolons, which separate cells in a German or French spreadsheet', async () => {
  await fixture.end(completed, { outboxId: 'a;@b', key: 'x;=1+1;y', ...mappedRecord() })
  const { printed } = await run({ csv: true })
  expect(printed).toContain(`"x;'=1+1;y"`)
  expect(printed).toContain(`"a;'@b"`)
})

test('an emptied record keeps its amounts, and a pruned one is not listed', async () => {
  await fixture.end(completed, { outboxId: '1', ...mappedRecord({ amount: '77.70' }) })
  await fixture.end({ ...completed, transactionId: 'tx-2' }, { outboxId: '2', ...mappedRecord() })
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString()
  await endedAt('1', ago(40))
  await endedAt('2', ago(100))
  await prune.action(fixture.context(), {})
  expect(await records()).toMatchObject([
    { kind: 'record', outboxId: '1', amounts: { total_amount: '77.70' }, emptied: expect.any(String) },
  ])
})

test('text and CSV show when an operator pruned', async () => {
  await fixture.end(completed, { outboxId: '1' })
  await endedAt('1', new Date(Date.now() - 100 * 86_400_000).toISOString())
  await prune.action(fixture.context(), { as: 'zoe' })
  const said = ['operator zoe: prune']
  const { printed } = await run()
  expect(printed.match(/operator zoe: .*/g)).toEqual(said)
  const rows: Record<string, string>[] = parse((await run({ csv: true })).printed, { columns: true })
  expect(rows.flatMap(({ kind, hands }) => (kind === 'prune' ? [hands] : []))).toEqual(said)
})

test('text and CSV say how many records were erased, and the ids of the first five', async () => {
  for (let n = 1; n <= 6; n++) await fixture.end(done(), { outboxId: `${n}`, key: 'K' })
  await erase.action(fixture.context(), { key: 'K', reason: 'request 1', as: 'zoe', yes: true })
  const uuid = '[0-9a-f-]{36}'
  const said = new RegExp(`operator zoe: erase 6 records: (${uuid}, ){5}and 1 more \\(request 1\\)`)
  expect((await run()).printed).toMatch(said)
  expect((await run({ csv: true })).printed).toMatch(said)
})

test('an invalid span, or --csv with --json, is refused', async () => {
  expect(await run({ since: 'soon' })).toMatchObject({ code: 2, messages: expect.stringContaining('--since soon') })
  expect((await run({ csv: true, json: true })).code).toBe(2)
})

let transactions = 0
const done = () => ({ ...completed, transactionId: `tx-${++transactions}` })

test('--type and --containing list only matching records of every state, without acts', async () => {
  await fixture.end(done(), { outboxId: '1', key: 'Müller', ...mappedRecord() })
  await fixture.end(failedE003, { outboxId: '2', type: 'order', ...mappedRecord({ field2: '"PO-4711"' }) })
  await fixture.end({ state: 'queued' }, { outboxId: '3', ...mappedRecord({ field2: '"po-4711_x"' }) })
  await pause.action(fixture.context(), { as: 'zoe', reason: 'closing' })
  const ids = async (options: OptionsOf<typeof audit>) =>
    (await json(options)).map((line: { outboxId?: string }) => line.outboxId)
  expect(await ids({ type: 'data' })).toEqual(['1', '3'])
  expect(await ids({ containing: 'PO-4711' })).toEqual(['2', '3'])
  expect(await ids({ containing: '4711_' })).toEqual(['3'])
  expect(await ids({ containing: 'müller' })).toEqual(['1'])
  expect(await ids({ containing: 'PO-4711', type: 'order' })).toEqual(['2'])
  expect(await ids({ key: 'Müller', type: 'order' })).toEqual([])
  expect((await run({ containing: 'nowhere' })).code).toBe(3)
  expect((await run({ containing: ' ' })).code).toBe(2)
  await fixture.ledger.pool.query(
    `update outboxd.submission set payload = null, body = null, emptied_at = now() where outbox_id = '1'`,
  )
  expect(await ids({ containing: '12.30' })).toEqual(['2', '3'])
})

test('--csv has columns for customer, currency and each amount', async () => {
  await fixture.end(done(), { outboxId: '1', ...mappedRecord({ amount: '-1234567.10' }) })
  await fixture.end(done(), {
    outboxId: '2',
    amounts: { rate: '1.5' },
    body: '{"customerId":"=C9","data":{"currency":"CHF"}}',
  })
  const { printed } = await run({ csv: true })
  expect(printed.split('\n')[0]).toBe(
    'kind,at,outbox_id,type,key,outcome,code,amounts,transaction_id,attempts,recorded,captured,sent,accepted,ended,steps,hands,emptied,erased,submission_id,customer,currency,may_have_arrived,amount_total_amount',
  )
  const rows: Record<string, string>[] = parse(printed, { columns: true })
  const of = (id: string) => rows.find(({ outbox_id }) => outbox_id === id)
  expect(of('1')).toMatchObject({ amount_total_amount: '-1234567.10', customer: 'C1', currency: 'EUR' })
  expect(of('2')).toMatchObject({ amounts: 'rate=1.5', amount_total_amount: '', customer: "'=C9", currency: 'CHF' })
  await fixture.ledger.pool.query(`update outboxd.submission set payload = null, body = null, emptied_at = now()`)
  expect((await records())[0]).toMatchObject({ customer: null, currency: 'EUR' })
})

test.each([
  ['EUR+USD', '{"data":{"t":{"currency":"USD","value":"6.00"}}}'],
  ['EUR+USD', '{"data":{"total":"6.00","fx":{"currency":"USD","rate":"1.1"}}}'],
  ['USD', '{"data":{"currency":["usd"]}}'],
  ['CHF+USD', '{"data":{"Currency":"usd"},"lines":[{"currency":"CHF"}]}'],
  ['USD', '{"data":{"Currency":"USD"}}'],
  ['USD', '{"data":{"currencyCode":"USD"}}'],
  ['USD', '{"data":{"currency_code":" USD "}}'],
  ['USD', '{"data":{"currency":{"code":"USD","name":"Dollar"}}}'],
  ['EUR+USD', '{"lines":[{"currency":"USD"},{"currency":"USD"}]}'],
  ['CHF+EUR+USD', '{"currency":"USD","lines":[{"currency":"EUR"},{"currency":"CHF"}]}'],
  ['EUR', '{"currency":"","data":{"currency":null,"value":"USD","code":"USD","currency_rate":"USD"}}'],
  ['??', '{"currency":"\\u0000\\ud800"}'],
  [`${'A'.repeat(61)}...`, `{"currency":"${'A'.repeat(65)}"}`],
])('the currency is %s for the request %s', async (currency, body) => {
  await fixture.end(done(), { outboxId: '1', amounts: { total: '6.00' }, body })
  expect(await records()).toMatchObject([{ currency }])
  expect(JSON.parse((await run({ sum: true, json: true })).printed)).toMatchObject([{ currency }])
})

test('emptied records keep their currency, so --sum never adds up different currencies', async () => {
  for (const currency of ['USD', 'EUR', 'JPY'])
    await fixture.end(done(), { outboxId: currency, amounts: { total: '5.00' }, body: JSON.stringify({ currency }) })
  const before = await run({ sum: true })
  const ago = new Date(Date.now() - 40 * 86_400_000).toISOString()
  await fixture.ledger.pool.query('update outboxd.submission set ended_at = $1', [ago])
  const full = (await run({ sum: true, csv: true })).printed
  expect(full.split('\n')).toHaveLength(before.printed.split('\n').length)
  await prune.action(fixture.context(), {})
  expect(await records()).toMatchObject([{ emptied: expect.any(String) }, {}, {}])
  expect((await run({ sum: true, csv: true })).printed).toBe(full)
})

test('a replay logs the currency of the new request', async () => {
  const id = await fixture.end(failedE003, { outboxId: '1', ...mappedRecord(), body: '{"currency":"USD"}' })
  await replay.action(fixture.context(), [id], {})
  expect(await records()).toMatchObject([
    { currency: 'EUR', steps: [{ currency: 'USD' }, {}, {}, { currency: 'EUR' }] },
  ])
})

test('the currency of erased records is unknown', async () => {
  const key = 'K'
  await fixture.end(done(), { outboxId: '1', key, amounts: { total: '6.00' }, body: '{"currency":"USD"}' })
  await fixture.end(done(), { outboxId: '2', key, amounts: { total: '7.00' } })
  expect(await records()).toMatchObject([{ currency: 'USD' }, { currency: 'EUR' }])
  await erase.action(fixture.context(), { key, reason: 'request 1', yes: true })
  expect(await records()).toMatchObject([{ currency: null }, { currency: null }])
  expect((await run({ sum: true })).printed).toMatch(/ 2 +2 +unknown\n/)
  const csv: Record<string, string>[] = parse((await run({ sum: true, csv: true })).printed, { columns: true })
  expect(csv).toMatchObject([{ records: '2', not_added: '2', currency: '' }])
})

test('--sum adds no amounts that may be of several currencies', async () => {
  const body = '{"currency":"USD","part":{"currency":"CHF"}}'
  await fixture.end(done(), { outboxId: '1', amounts: { total: '6.00' }, body })
  await fixture.end(done(), { outboxId: '2', amounts: { total: '7.00' }, body })
  await fixture.end(done(), { outboxId: '3', amounts: { total: '8.00' } })
  expect(JSON.parse((await run({ sum: true, json: true })).printed)).toMatchObject([
    { currency: 'CHF+USD', records: 2, notAdded: 2, amounts: {} },
    { currency: 'EUR', records: 1, notAdded: 0, amounts: { total: '8.00' } },
  ])
})

test('--who lists one person’s acts and the records on which they acted; each decision counts as an act', async () => {
  await fixture.end(failedE003, { outboxId: '1', ...mappedRecord() })
  await fixture.end(failedE003, { outboxId: '2', ...mappedRecord() })
  await replay.action(fixture.context(), ['outbox:1'], { as: 'Alice', reason: 'ticket 1' })
  await discard.action(fixture.context(), ['outbox:2'], { as: 'bob', reason: 'twice' })
  await pause.action(fixture.context(), { as: 'alice', reason: 'closing', for: '1h' })
  const { printed, messages } = await run({ who: 'alice' })
  expect(printed).toMatch(/pause/)
  expect(printed).toMatch(/outbox:1/)
  expect(printed).not.toMatch(/outbox:2/)
  expect(messages).toBe('1 record, 2 acts of operators.\n')
  expect((await run()).messages).toBe('2 records, 3 acts of operators.\n')
  expect(await run({ who: 'carol' })).toMatchObject({ code: 3, printed: '' })
})

test('a record that failed although it may have arrived says so in text, CSV and JSON', async () => {
  await fixture.end({ ...failedE003, mayHaveArrived: true }, { outboxId: '1', ...mappedRecord() })
  expect(await records()).toMatchObject([{ mayHaveArrived: true }])
  expect((await run()).printed).toContain(', may have arrived')
  expect(parse((await run({ csv: true })).printed, { columns: true })).toMatchObject([{ may_have_arrived: 'yes' }])
})

test('--sum prints exact totals by month, type, outcome and currency, beyond the precision of a double', async () => {
  for (let n = 1; n <= 3; n++)
    await fixture.end(done(), { outboxId: `o${n}`, amounts: { total: '90071992547409.93', fee: '0.1' } })
  await fixture.end(done(), { outboxId: 'n', amounts: { total: '-0.5' } })
  await fixture.end(done(), { outboxId: 'usd', amounts: { total: '7' }, body: '{"currency":"USD"}' })
  await fixture.end(done(), { outboxId: 'unknown', amounts: null, payload: null })
  await fixture.end(failedE003, { outboxId: 'f', type: 'order', amounts: { total: '5.00' } })
  await fixture.end({ state: 'queued' }, { outboxId: 'q', amounts: { total: '1.00' } })
  await fixture.ledger.pool.query(
    `update outboxd.submission set ended_at = case when outbox_id like 'o%' then '2026-10-31T23:59:59.999Z' else '2026-11-01T00:00:00Z' end::timestamptz
     where ended_at is not null`,
  )
  const { printed, code } = await run({ sum: true, json: true })
  expect(code).toBe(0)
  const rows = JSON.parse(printed)
  expect(rows).toMatchObject([
    {
      month: '2026-10',
      type: 'data',
      outcome: 'completed',
      currency: 'EUR',
      records: 3,
      amounts: { total: '270215977642229.79', fee: '0.3' },
    },
    {
      month: '2026-11',
      type: 'data',
      outcome: 'completed',
      currency: null,
      records: 1,
      withoutAmounts: 1,
      amounts: {},
    },
    { month: '2026-11', type: 'data', outcome: 'completed', currency: 'EUR', records: 1, amounts: { total: '-0.5' } },
    { month: '2026-11', type: 'data', outcome: 'completed', currency: 'USD', records: 1, amounts: { total: '7' } },
    {
      month: '2026-11',
      type: 'order',
      outcome: 'failed',
      currency: 'EUR',
      records: 1,
      withoutAmounts: 0,
      amounts: { total: '5.00' },
    },
    { month: null, type: 'data', outcome: 'queued', records: 1, amounts: { total: '1.00' } },
  ])
  const csv: Record<string, string>[] = parse((await run({ sum: true, csv: true })).printed, { columns: true })
  expect(csv[0]).toMatchObject({
    month: '2026-10',
    records: '3',
    amount_total: '270215977642229.79',
    amount_fee: '0.3',
  })
  expect((await run({ sum: true })).printed).toMatch(
    /^month +type +outcome +records.*\n2026-10 +data +completed +3 .*EUR +fee=0\.3 total=270215977642229\.79\n/,
  )
})

test('sums are exact for any decimals', () => {
  const cents = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n })
  const text = (value: bigint) => {
    const digits = String(value < 0n ? -value : value).padStart(3, '0')
    return `${value < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
  }
  fc.assert(fc.property(cents, cents, (a, b) => addDecimals(text(a), text(b)) === text(a + b)))
  expect(addDecimals('0', '1.5')).toBe('1.5')
  expect(addDecimals('-0.05', '0.1')).toBe('0.05')
})
