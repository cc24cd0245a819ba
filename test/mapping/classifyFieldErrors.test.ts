import { expect, test } from 'vitest'
import { classifyFieldErrors, mapOutboxRecord } from '../../src/mapping/mapRecord.ts'
import { mappingOf, mapValue } from './mappingOf.ts'

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
  ['type: datetime', '"Jane Doe"', 'no_datetime'],
  ['type: datetime, timezone: Europe/Berlin', '"2026-03-29T02:30:00"', 'no_datetime'],
])('with { %s } and %s the log names the field v and the mistake %s, and nothing of the value', (options, json, kind) => {
  const mapped = mapValue(mappingOf(`from: v, ${options}`), json)
  expect(mapped.kind === 'invalid' && classifyFieldErrors(mapped.errors)).toEqual([{ field: 'v', kind }])
})

test.each([
  [{ type: 't', payload: '{}', unreadable: null }, 'v', 'missing'],
  [{ type: 't', payload: 'Jane Doe', unreadable: null }, 'payload', 'no_json'],
  [{ type: 't', payload: '\uFEFF{}', unreadable: null }, 'payload', 'no_json'],
  [{ type: 'Jane', payload: '{}', unreadable: null }, 'payload', 'no_mapping'],
  [{ type: 't', payload: null, unreadable: 'Jane Doe' }, 'payload', 'invalid'],
])('for %o the log names %s and %s', (record, field, kind) => {
  const mapped = mapOutboxRecord(new Map([['t', mappingOf('from: v, type: string, required: true')]]), record, 'id')
  expect(mapped.kind === 'refused' && classifyFieldErrors(mapped.errors)).toEqual([{ field, kind }])
})
