import { expect, test } from 'vitest'
import { mapOutboxRecord } from '../../src/mapping/mapRecord.ts'
import { decodePayload, mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { mappingOf } from '../mapping/mappingOf.ts'
import { setup } from './setup.ts'

const yaml = (payload: string, more = '') => `
schema: Erp
table: Outbox "Messages"
id: Id
type: { constant: data }
payload: ${payload}
state: { flag: Taken, set: [queued] }${more}`

const table = (payload: string) => `create schema "Erp"; create table "Erp"."Outbox ""Messages""" (
  "Id" uuid primary key default gen_random_uuid(), "Taken" boolean not null default false, n int generated always as identity,
  "Pay Load" ${payload})`

const insert = `insert into "Erp"."Outbox ""Messages""" ("Pay Load") values`

test.each([
  ['jsonb', `'{"amount": 1234567890.10}'`, '{"amount": 1234567890.10}'],
  ['json', `'{"b": 1, "a": 1e2}'`, '{"b": 1, "a": 1e2}'],
  ['text', `'{"amount": 0.10}'`, '{"amount": 0.10}'],
  ['varchar(50)', `'{"ä": "€"}'`, '{"ä": "€"}'],
  ['bytea', `convert_to('{"ä": "€"}', 'utf8')`, '{"ä": "€"}'],
])('a payload of type %s keeps its text', async (type, value, text) => {
  const { pool, captureRecords } = await setup({ ddl: table(type), yaml: yaml('Pay Load') })
  await pool.query(`${insert} (${value})`)
  expect(await captureRecords()).toMatchObject([
    { payload: text, unreadable: null, type: 'data', key: null, createdAt: null },
  ])
  expect(await captureRecords()).toEqual([])
})

test('a text payload with a byte order mark is rejected by a message that names the mark', async () => {
  const { pool, captureRecords } = await setup({ ddl: table('text'), yaml: yaml('Pay Load') })
  await pool.query(`${insert} (U&'\\FEFF{"v": "x"}')`)
  const [record] = await captureRecords()
  const mappings = new Map([['data', mappingOf('from: v, type: string')]])
  expect(record && mapOutboxRecord(mappings, record, 'id')).toMatchObject({
    kind: 'refused',
    reason: 'payload begins with a byte order mark (U+FEFF), which JSON does not allow',
  })
})

test('a payload that cannot be read is captured with the reason, and other rows go on', async () => {
  const { pool, captureRecords, outbox } = await setup({ ddl: table('bytea'), yaml: yaml('Pay Load', '\norder: n') })
  await pool.query(
    `${insert} ('{}'), ('\\xff7b7d'), ('\\x7b007d'), (null), (convert_to(repeat('x', 1001), 'utf8')), ('')`,
  )
  expect((await captureRecords()).map(({ payload, unreadable }) => payload ?? unreadable)).toEqual([
    '{}',
    'the payload is not utf-8',
    'the payload contains a NUL character, which JSON text cannot',
    'the payload is missing: it is NULL in the outbox',
    'the payload has 1001 bytes, more than the 1000 that PAYLOAD_MAX_BYTES allows',
    '',
  ])
  expect(await mayHaveWaitingRows(outbox)).toBe(false)
})

test('a payload is decoded from the encoding that the file names; a text column ignores a character set', () => {
  const read = (raw: string | Buffer, encoding: string) => decodePayload({ raw, bytes: raw.length }, encoding, 100)
  expect(read('eyJhIjogMS41MH0=', 'base64').payload).toBe('{"a": 1.50}')
  expect(read(Buffer.from('eyJh\nIjogMX0='), 'base64').payload).toBe('{"a": 1}')
  expect(read('7b7d', 'hex').payload).toBe('{}')
  for (const name of ['windows-1252', 'iso-8859-1'])
    expect(read(Buffer.from([0x22, 0x80, 0x22]), name).payload).toBe('"€"')
  expect(read('"ü"', 'iso-8859-1').payload).toBe('"ü"')
  expect(read('no base64!', 'base64').unreadable).toBe('the payload is not base64')
  expect(read('/w==', 'base64').unreadable).toBe('the payload is not base64')
  expect(read('7b7', 'hex').unreadable).toBe('the payload is not hex')
})

test('a payload in base64 or hex of many megabytes is read', () => {
  const json = JSON.stringify({ a: 'x'.repeat(4_500_000) })
  const read = (raw: string, encoding: string) => decodePayload({ raw, bytes: raw.length }, encoding, 20_000_000)
  for (const encoding of ['base64', 'hex'] as const) {
    const raw = Buffer.from(json).toString(encoding)
    expect(read(raw, encoding).payload === json).toBe(true)
    expect(read(`${raw.slice(0, -1)}!`, encoding).unreadable).toBe(`the payload is not ${encoding}`)
  }
})

test('a payload built of columns keeps the digits of numerics and the offsets of times', async () => {
  const ddl = `create table invoice (id bigint generated always as identity primary key, sent timestamptz,
    "Net" numeric(14,4), tax numeric, rate double precision, at timestamptz, local timestamp, day date, note text, ok boolean,
    tags text[], extra jsonb)`
  const value = `insert into invoice ("Net", tax, rate, at, local, day, note, ok, tags, extra) values (1234567890.1000, 1e20, 0.1,
    '2026-11-20 10:00:00.123456+01', '2026-11-20 10:00', '2026-11-20', 'a "b"', true, '{x,y}', '{"n": 1.10}')`
  const { pool, captureRecords } = await setup({
    ddl,
    yaml: `
table: invoice
id: id
type: { constant: data }
payload: { columns: { net: Net, tax: tax, rate: rate, at: at, local: local, day: day, "odd 'name'": note, ok: ok, tags: tags, extra: extra } }
state: { timestamp: sent, set: [queued] }`,
  })
  await pool.query(value)
  const [record] = await captureRecords()
  expect(record?.payload).toBe(
    '{"net":1234567890.1000,"tax":100000000000000000000,"rate":0.1,"at":"2026-11-20T09:00:00.123456+00:00",' +
      '"local":"2026-11-20T10:00:00","day":"2026-11-20","odd \'name\'":"a \\"b\\"","ok":true,"tags":["x","y"],"extra":{"n": 1.10}}',
  )
})

test('the payload can be the whole row, or a list of columns', async () => {
  const ddl = 'create table pair (id int primary key, a numeric, sent boolean)'
  const yaml = (columns: string) => `
table: pair
id: id
type: { constant: data }
payload: { columns: ${columns} }
state: { flag: sent, new: null, set: [queued] }`
  const whole = await setup({ ddl, yaml: yaml('all') })
  await whole.pool.query('insert into pair values (1, 2.50)')
  expect((await whole.captureRecords())[0]?.payload).toBe('{"id":1,"a":2.50,"sent":null}')
  const listed = await setup({ ddl, yaml: yaml('[a]') })
  await listed.pool.query('insert into pair values (1, 2.50)')
  expect((await listed.captureRecords())[0]?.payload).toBe('{"a":2.50}')
})

test('created_at is read from times, local times, dates and numbers', async () => {
  const at = async (column: string, spec: string, value: string) => {
    const { pool, captureRecords } = await setup({
      ddl: `create table message (id int primary key, at ${column}, taken boolean default false)`,
      yaml: `
table: message
id: id
type: { constant: data }
created_at: ${spec}
payload: { columns: [id] }
state: { flag: taken, set: [queued] }`,
    })
    await pool.query(`insert into message values (1, ${value})`)
    return (await captureRecords())[0]?.createdAt
  }
  expect(await at('timestamptz', 'at', `'2026-11-20 10:00+01'`)).toBe('2026-11-20T09:00:00.000000Z')
  expect(await at('timestamp', '{ column: at, timezone: Europe/Berlin }', `'2026-07-20 10:00'`)).toBe(
    '2026-07-20T08:00:00.000000Z',
  )
  expect(await at('timestamp', 'at', `'2026-07-20 10:00'`)).toBe('2026-07-20T10:00:00.000000Z')
  expect(await at('date', 'at', `'2026-07-20'`)).toBe('2026-07-20T00:00:00.000000Z')
  expect(await at('bigint', '{ column: at, unit: microseconds }', '1763629200123456')).toBe(
    '2025-11-20T09:00:00.123456Z',
  )
  expect(await at('bigint', '{ column: at, unit: milliseconds }', '9223372036854775807')).toBeNull()
  expect(await at('timestamptz', 'at', 'null')).toBeNull()
})
