import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { mapOutboxRecord, mapRecord } from '../../src/mapping/mapRecord.ts'
import { mappingFrom, mappingOf, mapValue, outcomeOf } from './mappingOf.ts'

/** Options of the field, the client's JSON, and the request or the error. */
type Case = [options: string, json: string, outcome: string]

function check(cases: Case[]): void {
  test.each(cases)('{ %s } turns %s into %s', (options, json, outcome) => {
    expect(outcomeOf(mapValue(mappingOf(`from: v, ${options}`), json))).toBe(outcome)
  })
}

describe('a decimal', () => {
  check(
    [
      ['type: "decimal(10,2)"', '1234.5', '{"v":1234.50}'],
      ['type: "decimal(10, 2)"', '1234.5', '{"v":1234.50}'],
      ['type: "decimal(10,2)"', '10.500', '{"v":10.50}'],
      ['type: "decimal(10,2)"', '1e2', '{"v":100.00}'],
      ['type: "decimal(10,2)"', '12E-1', '{"v":1.20}'],
      ['type: "decimal(10,2)"', '1e400', 'v has 401 digits before the point, decimal(10,2) takes 8: "1e400"'],
      ['type: "decimal(10,2)"', '1e-400', 'v has 400 decimals, decimal(10,2) takes 2: "1e-400"'],
      ['type: "decimal(10,2)"', '0e999999999999', '{"v":0.00}'],
      [
        'type: "decimal(10,2)"',
        `1e${'9'.repeat(400)}`,
        `v has too many to count digits before the point, decimal(10,2) takes 8: "1e${'9'.repeat(57)}…"`,
      ],
      ['type: "decimal(10,2)"', '-0', '{"v":0.00}'],
      ['type: "decimal(10,2)"', '-0.00', '{"v":0.00}'],
      ['type: "decimal(10,2)"', '99999999.99', '{"v":99999999.99}'],
      ['type: "decimal(10,2)"', '-99999999.99', '{"v":-99999999.99}'],
      ['type: "decimal(10,2)"', '100000000', 'v has 9 digits before the point, decimal(10,2) takes 8: "100000000"'],
      ['type: "decimal(10,2)"', '0.001', 'v has 3 decimals, decimal(10,2) takes 2: "0.001"'],
      ['type: "decimal(38,2)"', '123456789012345678901234567890.12', '{"v":123456789012345678901234567890.12}'],
      ['type: "decimal(5,0)"', '12', '{"v":12}'],
      ['type: "decimal(3,3)"', '0.5', '{"v":0.500}'],
      ['type: "decimal(10,2)"', '"12.30"', '{"v":12.30}'],
      ['type: "decimal(10,2)"', '"+12.3"', '{"v":12.30}'],
      ['type: "decimal(10,2)"', '"-0012"', '{"v":-12.00}'],
      ...['1.000', '-12.345', '0.500', '1234.500', '1,000'].map((text): Case => {
        const what = `v may have decimals or thousands after its separator: "${text}"`
        return ['type: "decimal(10,2)"', `"${text}"`, `${what}; say decimal_separator: "." or ","`]
      }),
      ['type: "decimal(10,2)", decimal_separator: "."', '"1.000"', '{"v":1.00}'],
      ['type: "decimal(10,3)", decimal_separator: ","', '"1,234"', '{"v":1.234}'],
      ['type: "decimal(10,2)", decimal_separator: ","', '"-1234,5"', '{"v":-1234.50}'],
      ['type: "decimal(10,2)", decimal_separator: ","', '"12"', '{"v":12.00}'],
      ['type: "decimal(10,2)", decimal_separator: ","', '1.000', '{"v":1.00}'],
      ...['EUR 1,50', '1,50 EUR', '1,50,00', '1,'].map((text): Case => {
        const outcome = `v is not a plain number like 1234,50: "${text}"`
        return ['type: "decimal(10,2)", decimal_separator: ","', `"${text}"`, outcome]
      }),
      [
        'type: "decimal(10,2)", decimal_separator: ","',
        '"1.000"',
        'v is not a plain number like 1234,50: "1.000"; nothing may separate thousands',
      ],
      ['type: "decimal(10,2)"', '" 12.30"', 'v is not a plain number like 1234.50: " 12.30"'],
      ['type: "decimal(10,2)", trim: true', '" 12.30 "', '{"v":12.30}'],
      ['type: "decimal(10,2)"', '"1e2"', 'v is not a plain number like 1234.50: "1e2"'],
      ['type: "decimal(10,2)"', '"NaN"', 'v is not a plain number like 1234.50: "NaN"'],
      ['type: "decimal(10,2)"', '""', 'v is empty, not a number'],
      [
        'type: "decimal(10,2)"',
        '"1,5"',
        'v is not a plain number like 1234.50: "1,5"; write a point for the decimals and nothing between thousands, or say decimal_separator: ","',
      ],
      ['type: "decimal(10,2)"', `"${'1'.padStart(1_000, '0')}"`, '{"v":1.00}'],
      ['type: "decimal(10,2)"', `"${'1'.padStart(1_001, '0')}"`, 'v is longer than 1000 characters'],
      ['type: "decimal(10,2)"', '1.'.padEnd(1_000, '0'), '{"v":1.00}'],
      ['type: "decimal(10,2)"', '1.'.padEnd(1_001, '0'), 'v is longer than 1000 characters'],
      ['type: "decimal(10,2)"', 'true', 'v is true, not a number'],
      ['type: "decimal(10,2)"', '[1]', 'v is an array, not a number'],
      ['type: "decimal(10,2)", as: string', '1234.5', '{"v":"1234.50"}'],
      ['type: "decimal(10,2)", round: half-even', '2.345', '{"v":2.34}'],
      ['type: "decimal(10,2)", round: half-even', '2.355', '{"v":2.36}'],
      ['type: "decimal(10,2)", round: half-even', '2.3450001', '{"v":2.35}'],
      ['type: "decimal(10,2)", round: half-up', '2.345', '{"v":2.35}'],
      ['type: "decimal(10,2)", round: half-up', '-2.345', '{"v":-2.35}'],
      ['type: "decimal(10,2)", round: half-up', '-0.004', '{"v":0.00}'],
      ['type: "decimal(10,2)", round: half-up', '0.005', '{"v":0.01}'],
      ['type: "decimal(10,2)", round: half-even', '0.005', '{"v":0.00}'],
      ['type: "decimal(10,2)", round: half-even', '0.0051', '{"v":0.01}'],
      ['type: "decimal(10,2)", round: half-up', '1e-999999999', '{"v":0.00}'],
      ['type: "decimal(10,2)", round: half-up', '9.995', '{"v":10.00}'],
      [
        'type: "decimal(10,2)", round: half-up',
        '99999999.995',
        'v has 9 digits before the point, decimal(10,2) takes 8: "99999999.995"',
      ],
    ].filter(([, , outcome]) => outcome !== '') as Case[],
  )
})

describe('an integer', () => {
  check([
    ['type: integer', '42', '{"v":42}'],
    ['type: integer', '42.0', '{"v":42}'],
    ['type: integer, decimal_separator: "."', '"42.000"', '{"v":42}'],
    [
      'type: integer',
      '"42.000"',
      'v may have decimals or thousands after its separator: "42.000"; say decimal_separator: "." or ","',
    ],
    ['type: integer', '"0042"', '{"v":42}'],
    ['type: integer', '1e3', '{"v":1000}'],
    ['type: integer', '1.5', 'v is not a whole number: "1.5"'],
    ['type: integer', '9223372036854775807', '{"v":9223372036854775807}'],
    ['type: integer', '-9223372036854775808', '{"v":-9223372036854775808}'],
    ['type: integer', '9223372036854775808', 'v is beyond 64 bits: "9223372036854775808"'],
    ['type: integer', '1e400', 'v is beyond 64 bits: "1e400"'],
    ['type: integer, as: string', '7', '{"v":"7"}'],
  ])
})

describe('text', () => {
  check([
    ['type: string', '-3', '{"v":"-3"}'],
    ['type: string', '"a\\u0000"', '{"v":"a\\u0000"}'],
    ['type: string', '"a\\u00e9\\n"', '{"v":"aé\\n"}'],
    ['type: string, maxLength: 3', '"abc"', '{"v":"abc"}'],
    ['type: string, maxLength: 3', '"abcd"', 'v has 4 characters, at most 3 are allowed: "abcd"'],
    ['type: string, maxLength: 2', '"😀😀"', '{"v":"😀😀"}'],
    ['type: string, maxLength: 3, trim: true', '"  abc "', '{"v":"abc"}'],
    ['type: string', '12345678901234567890', '{"v":"12345678901234567890"}'],
    ['type: string', '1.50', 'v is a number, not text'],
    ['type: string', 'true', 'v is true, not text'],
    ['type: string', '{"a":1}', 'v is an object, not text'],
    ['type: string', '""', '{"v":""}'],
    ['type: string, required: true', '""', 'v is empty'],
    ['type: string, required: true, trim: true', '"  "', 'v is empty'],
    ['type: string', `"${'x'.repeat(5)}"`, '{"v":"xxxxx"}'],
    ['type: enum, values: [red, blue]', '"blue"', '{"v":"blue"}'],
    ['type: enum, values: [red, blue]', '"bleu"', 'v is not one of red, blue: "bleu"; did you mean "blue"?'],
    ['type: enum, values: ["1", "2"]', '2', '{"v":"2"}'],
    ['type: uuid', '"123E4567-E89B-12D3-A456-426614174000"', '{"v":"123e4567-e89b-12d3-a456-426614174000"}'],
    ['type: uuid', '"123"', 'v is not a uuid like 123e4567-e89b-12d3-a456-426614174000: "123"'],
    ['type: uuid', '123', 'v is a number, not a uuid'],
  ])
})

describe('a boolean', () => {
  check([
    ['type: boolean', 'true', '{"v":true}'],
    ['type: boolean', '"false"', '{"v":false}'],
    ['type: boolean', '"J"', 'v is neither true nor false: "J"; a lookup can translate it'],
    ['type: boolean', '1', 'v is a number, not true or false'],
    ['type: boolean, lookup: { J: true, N: false }', '"J"', '{"v":true}'],
    ['type: boolean, lookup: { 1: true, 0: false }', '0', '{"v":false}'],
  ])
})

describe('a lookup', () => {
  check([
    ['type: enum, values: [value1, value2], lookup: { DE: value1, AT: value2 }', '"AT"', '{"v":"value2"}'],
    ['type: string, lookup: { DE: Germany }', '"DF"', 'v is not in the lookup table: "DF"; did you mean "DE"?'],
    ['type: string, lookup: { DE: Germany }, trim: true', '" DE "', '{"v":"Germany"}'],
    ['type: "decimal(4,2)", lookup: { full: 19, low: 7.0 }', '"low"', '{"v":7.00}'],
    ['type: string, lookup: { "": none }, required: true', '""', '{"v":"none"}'],
    ['type: string, lookup: { constructor: x }', '"toString"', 'v is not in the lookup table: "toString"'],
    ['type: string, lookup: { a: b }', '["a"]', 'v is an array, which a lookup table cannot hold'],
    ['type: string, lookup: { true: yes }', 'true', '{"v":"yes"}'],
  ])
})

describe('a date-time', () => {
  const berlin = 'type: datetime, timezone: Europe/Berlin'
  check([
    ['type: datetime', '"2026-11-21T00:54:00+01:00"', '{"v":"2026-11-20T23:54:00Z"}'],
    ['type: datetime', '"2026-11-20T23:54:00.1234567890123Z"', '{"v":"2026-11-20T23:54:00.1234567890123Z"}'],
    ['type: datetime', '"2026-11-20 23:54:00.123456+00"', '{"v":"2026-11-20T23:54:00.123456Z"}'],
    ['type: datetime', '"20261120T235400,5-0130"', '{"v":"2026-11-21T01:24:00.5Z"}'],
    ['type: datetime', '"2026-12-31T24:00:00Z"', '{"v":"2027-01-01T00:00:00Z"}'],
    ['type: datetime', '"2026-11-20T23:54Z"', '{"v":"2026-11-20T23:54:00Z"}'],
    [
      'type: datetime',
      '"2026-11-20T23:54:60Z"',
      'v is not an ISO 8601 date-time like 2026-11-20T23:54:00+01:00: "2026-11-20T23:54:60Z"',
    ],
    [
      'type: datetime',
      '"2026-02-29T00:00:00Z"',
      'v is not a date of the calendar or a time of the day: "2026-02-29T00:00:00Z"',
    ],
    ['type: datetime', '"20.11.2026"', 'v is not an ISO 8601 date-time like 2026-11-20T23:54:00+01:00: "20.11.2026"'],
    ['type: datetime', '1700000000', 'v is a number, not an ISO 8601 date-time in text'],
    [
      'type: datetime',
      '"2026-11-20T23:54:00"',
      'v has no offset from UTC: "2026-11-20T23:54:00"; name its zone in the mapping, for example timezone: Europe/Berlin',
    ],
    [
      'type: datetime',
      '"2026-11-20"',
      'v is a date without a time: "2026-11-20"; name its zone in the mapping, for example timezone: Europe/Berlin',
    ],
    [
      'type: datetime',
      '"0000-01-01T00:00:00+01:00"',
      'v is outside the years 0000 to 9999 in UTC: "0000-01-01T00:00:00+01:00"',
    ],
    [
      'type: datetime',
      '"9999-12-31T23:59:00-00:01"',
      'v is outside the years 0000 to 9999 in UTC: "9999-12-31T23:59:00-00:01"',
    ],
    [berlin, '"2026-07-01T12:00:00.25"', '{"v":"2026-07-01T10:00:00.25Z"}'],
    [berlin, '"2026-12-01T12:00:00"', '{"v":"2026-12-01T11:00:00Z"}'],
    [berlin, '"2026-12-01T12:00:00+05:00"', '{"v":"2026-12-01T07:00:00Z"}'],
    [berlin, '"2026-12-01"', '{"v":"2026-11-30T23:00:00Z"}'],
    [berlin, '"20260701"', '{"v":"2026-06-30T22:00:00Z"}'],
    [berlin, '"2026-12-01T24:00"', '{"v":"2026-12-01T23:00:00Z"}'],
    [
      berlin,
      '"2026-03-29T02:30:00"',
      'v does not exist in Europe/Berlin: "2026-03-29T02:30:00" falls where the clocks go forward',
    ],
    [
      berlin,
      '"2026-10-25T02:30:00"',
      'v happens twice in Europe/Berlin: "2026-10-25T02:30:00" is 2026-10-25T00:30:00Z or 2026-10-25T01:30:00Z; send the offset',
    ],
    ['type: datetime, timezone: Africa/Cairo', '"2026-04-24"', '{"v":"2026-04-23T22:00:00Z"}'],
    ['type: datetime, timezone: "+02:00"', '"2026-04-24T02:00"', '{"v":"2026-04-24T00:00:00Z"}'],
    ['type: datetime, timezone: Africa/Monrovia', '"1960-01-01T00:00:00.5"', '{"v":"1960-01-01T00:44:30.5Z"}'],
    ['type: datetime, timezone: Africa/Monrovia', '"1960-01-01"', '{"v":"1960-01-01T00:44:30Z"}'],
  ])
})

describe('an array', () => {
  check([
    [
      'type: array',
      '[ {"price": 1.10, "n": 1e400}, -0, 12345678901234567890 ]',
      '{"v":[{"price":1.10,"n":1e400},-0,12345678901234567890]}',
    ],
    ['type: array, required: true', '[]', '{"v":[]}'],
    ['type: array', '{"0":1}', 'v is an object, not an array'],
    ['type: array, default: []', 'null', '{"v":[]}'],
  ])
})

describe('a missing value', () => {
  check([
    ['type: string, required: true', 'null', 'v is null'],
    ['type: string', 'null', '{}'],
    ['type: string, default: x', 'null', '{"v":"x"}'],
    ['type: string, default: x, required: true', 'null', '{"v":"x"}'],
    ['type: "decimal(10,2)", default: 1.1', 'null', '{"v":1.10}'],
    ['type: string, default: x', '""', '{"v":""}'],
  ])

  test('`path` is a synonym of `from`', () => {
    expect(outcomeOf(mapRecord(mappingOf('path: "a.b[1]", type: string'), '{"a":{"b":["x","y"]}}', 'i'))).toBe(
      '{"v":"y"}',
    )
  })

  test('a missing optional field leaves its key out, a missing required one is an error', () => {
    const mapping = mappingFrom(`
type: t
endpoint: data
fields:
  a: { from: a, type: string }
  b: { from: b, type: string }
body:
  list: [ "\${a}", "\${b}" ]
  inner: { a: "\${a}" }
  b: \${b}
`)
    expect(outcomeOf(mapRecord(mapping, '{"b":"x"}', 'i'))).toBe('{"list":["x"],"inner":{},"b":"x"}')
    expect(outcomeOf(mapRecord(mappingOf('from: w, type: string, required: true'), '{"v":1}', 'i'))).toBe(
      'v is missing',
    )
  })
})

describe('a path', () => {
  const payload = '{"a":{"b":[{"c.d":"deep","e f":null}],"s":"text"},"n":null}'
  test.each([
    ['a.b[0]["c.d"]', '{"v":"deep"}'],
    ['["a"].b[0]["c.d"]', '{"v":"deep"}'],
    ['a.b[1].x', '{}'],
    ['a.b[0].e f', '{}'],
    ['n.x.y', '{}'],
    ['constructor.name', '{}'],
    ['a.s.length', 'v cannot be read: a.s is text, not an object'],
    ['a[0]', 'v cannot be read: a is an object, not an array'],
    ['a.b.length', 'v cannot be read: a.b is an array, not an object'],
  ])('%s reads %s', (from, outcome) => {
    expect(outcomeOf(mapRecord(mappingOf(`from: '${from}', type: string`), payload, 'i'))).toBe(outcome)
  })
})

describe('the body', () => {
  test('constants and literals keep their digits and types', () => {
    const mapping = mappingFrom(`
type: t
endpoint: data
fields:
  currency: { constant: EUR, type: string }
  vat: { constant: 19, type: "decimal(4,2)" }
body:
  currency: \${currency}
  vat: \${vat}
  literal: [1.50, true, null, "1", { x: 12345678901234567890 }]
`)
    expect(outcomeOf(mapRecord(mapping, '{}', 'i'))).toBe(
      '{"currency":"EUR","vat":19.00,"literal":[1.50,true,null,"1",{"x":12345678901234567890}]}',
    )
  })

  test('values and the submission id may stand inside longer texts', () => {
    const mapping = mappingFrom(`
type: t
endpoint: orders
track: false
fields:
  n: { from: n, type: "decimal(10,2)", required: true }
  s: { from: s, type: string, default: '"q"' }
body:
  orderId: \${submission.id}
  ref: erp/\${ submission.id }/\${n}/\${s}
`)
    expect(mapping).toMatchObject({ type: 't', endpoint: 'orders', track: false, sendsSubmissionId: true })
    expect(outcomeOf(mapRecord(mapping, '{"n":1}', 'id-1'))).toBe('{"orderId":"id-1","ref":"erp/id-1/1.00/\\"q\\""}')
  })

  test.each([
    ['data', 'transactionId: "${submission.id}"', true],
    ['data', 'transactionId: "${ submission.id }"', true],
    ['orders', 'orderId: "${submission.id}"', true],
    ['data', 'transactionId: "erp-${submission.id}"', false],
    ['data', 'orderId: "${submission.id}"', false],
    ['data', 'field2: "invoice ${submission.id}"', false],
    ['data', 'data: { transactionId: "${submission.id}" }', false],
  ])('a mapping for %s with %s chooses the transaction’s id: %s', (endpoint, line, sendsSubmissionId) => {
    const fields = 'fields:\n  v: { from: v, type: string }'
    const text = `type: t\nendpoint: ${endpoint}\n${fields}\nbody:\n  v: \${v}\n  ${line}\n`
    expect(mappingFrom(text)).toMatchObject({ sendsSubmissionId })
  })

  test('a value that looks like a reference is sent unchanged', () => {
    expect(outcomeOf(mapValue(mappingOf('from: v, type: string'), '"${v} ${submission.id}"'))).toBe(
      '{"v":"${v} ${submission.id}"}',
    )
  })
})

test('all errors of a record are reported, and all fields of one that maps', () => {
  const mapping = mappingFrom(`
type: t
endpoint: data
fields:
  a: { from: x.a, type: integer, required: true, trim: true }
  b: { from: b, type: string, maxLength: 1 }
  c: { constant: 1, type: integer }
body: { a: "\${a}", b: "\${b}", c: "\${c}" }
`)
  expect(mapRecord(mapping, '{"x":{"a":"z"},"b":"bb"}', 'i')).toEqual({
    kind: 'invalid',
    errors: [
      { field: 'a', from: 'x.a', kind: 'no_number', message: 'is not a plain number like 1234.50: "z"' },
      { field: 'b', from: 'b', kind: 'too_long', message: 'has 2 characters, at most 1 are allowed: "bb"' },
    ],
  })
  expect(mapRecord(mapping, '{"x":{"a":" 7.0 "}}', 'i')).toEqual({
    kind: 'mapped',
    amounts: {},
    body: '{"a":7,"c":1}',
    fields: [
      { field: 'a', from: 'x.a', source: '" 7.0 "', value: '7' },
      { field: 'b', from: 'b', source: null, value: null },
      { field: 'c', from: null, source: null, value: '1' },
    ],
  })
})

test('an error message stays short, however long the value', () => {
  const long = JSON.stringify('\u0001😀'.repeat(100_000))
  for (const options of [
    'type: string, maxLength: 5',
    'type: integer',
    'type: datetime',
    'type: uuid',
    'type: boolean',
  ]) {
    const mapped = mapValue(mappingOf(`from: v, ${options}`), long)
    expect(outcomeOf(mapped).length).toBeLessThan(600)
    expect(mapped.kind).toBe('invalid')
  }
})

test('the amounts of a record are its decimal fields, with each digit as sent; a missing field is no amount', () => {
  const mapping = mappingFrom(`
type: t
endpoint: data
fields:
  net: { from: net, type: "decimal(10,2)", required: true }
  tax: { from: tax, type: "decimal(10,3)", as: string }
  none: { from: none, type: "decimal(10,2)" }
  n: { from: n, type: integer }
body: { net: "\${net}", tax: "\${tax}", none: "\${none}", n: "\${n}" }
`)
  expect(mapRecord(mapping, '{"net":1234.5,"tax":"-0.25","n":7}', 'i')).toMatchObject({
    body: '{"net":1234.50,"tax":"-0.250","n":7}',
    amounts: { net: '1234.50', tax: '-0.250' },
  })
})

test.each([
  ['type: string, required: true', 'null', 'null'],
  ['type: string, required: true', '""', 'empty'],
  ['type: string, maxLength: 3', '"Jane Doe"', 'too_long'],
  ['type: string', '{"name":"Jane Doe"}', 'wrong_type'],
  ['type: enum, values: [a, b]', '"Jane Doe"', 'not_one_of'],
  ['type: string, lookup: { a: b }', '"Jane Doe"', 'not_in_lookup'],
  ['type: uuid', '"Jane Doe"', 'no_uuid'],
  ['type: boolean', '"Jane Doe"', 'no_boolean'],
  ['type: integer', '1.5', 'no_integer'],
  ['type: integer', '99999999999999999999', 'too_large'],
  ['type: "decimal(10,2)"', '1.234', 'too_many_decimals'],
  ['type: "decimal(10,2)"', '1e400', 'too_large'],
  ['type: "decimal(10,2)"', '"1,5"', 'no_number'],
  ['type: "decimal(10,2)"', '"1.000"', 'ambiguous_number'],
  ['type: datetime', '"Jane Doe"', 'no_datetime'],
  ['type: datetime, timezone: Europe/Berlin', '"2026-03-29T02:30:00"', 'no_datetime'],
])('with { %s } and %s the error names the field v and the mistake %s', (options, json, kind) => {
  const mapped = mapValue(mappingOf(`from: v, ${options}`), json)
  expect(mapped).toMatchObject({ kind: 'invalid', errors: [{ field: 'v', kind }] })
})

test.each([
  [{ type: 't', payload: '{}', unreadable: null }, 'v', 'missing'],
  [{ type: 't', payload: 'Jane Doe', unreadable: null }, 'payload', 'no_json'],
  [{ type: 't', payload: '\uFEFF{}', unreadable: null }, 'payload', 'no_json'],
  [{ type: 'Jane', payload: '{}', unreadable: null }, 'payload', 'no_mapping'],
  [{ type: 't', payload: null, unreadable: 'Jane Doe' }, 'payload', 'invalid'],
])('for %o the error names %s and %s', (record, field, kind) => {
  const mapped = mapOutboxRecord(new Map([['t', mappingOf('from: v, type: string, required: true')]]), record, 'id')
  expect(mapped).toMatchObject({ kind: 'refused', errors: [{ field, kind }] })
})

describe('the examples of docs/start/mapping.md', () => {
  // In docs/start/mapping.md a ```yaml block is a mapping; the ```json blocks after it are a payload and its request.
  const page = readFileSync('docs/start/mapping.md', 'utf8')
  const blocks = [...page.matchAll(/^```(yaml|json)\n(.*?)^```$/gms)].map(([, language, text]) => ({ language, text }))
  const examples = blocks.flatMap(({ language, text = '' }, i) =>
    language === 'yaml'
      ? [{ mapping: text, payload: blocks[i + 1]?.text ?? '', request: blocks[i + 2]?.text ?? '' }]
      : [],
  )

  test.each(examples)('example $#: the payload becomes the request shown', ({ mapping, payload, request }) => {
    const mapped = mapRecord(mappingFrom(mapping), payload, '7d1c0c52-8f0e-4c57-9d0b-0a3f5e1f7a11')
    expect(mapped).toMatchObject({ kind: 'mapped', body: request.replaceAll(/\s*\n\s*|(?<=[{,:[]) | (?=[}\]])/g, '') })
  })

  test('the page has one', () => {
    expect(examples.length).toBeGreaterThan(0)
  })
})
