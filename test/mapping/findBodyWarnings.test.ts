import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findBodyWarnings } from '../../src/mapping/findBodyWarnings.ts'
import { mappingFrom } from './mappingOf.ts'

const folder = join(import.meta.dirname, '..', '..', 'mappings')

function data(fields: string, body: string): string[] {
  return findBodyWarnings(
    mappingFrom(`type: t\nendpoint: data\nfields:\n${indented(fields)}\nbody:\n${indented(body)}\n`),
  )
}

const indented = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n')

const customer = 'c: { from: c, type: string, maxLength: 10, required: true }'
const one = 'f1: { from: f1, type: enum, values: [value1, value2], required: true }'
const two = 'f2: { from: f2, type: string, required: true }'
const good = `${customer}\n${one}\n${two}`
const body = 'customerId: ${c}\ndata: { field1: "${f1}", field2: "${f2}" }'

test.each(['data.yaml', 'order.yaml'])('%s as shipped gives no warning', (file) => {
  expect(findBodyWarnings(mappingFrom(readFileSync(join(folder, file), 'utf8')))).toEqual([])
})

test('a body with all fields of the interface gives no warning, even with more fields', () => {
  expect(data(good, `${body}\nmore: 1`)).toEqual([])
})

test('the warning about a missing field suggests a misspelt one', () => {
  expect(data(good, 'customerId: ${c}\ndta: { field1: "${f1}", field2: "${f2}" }')).toEqual([
    'data is not in the body, and the service asks for it (docs/reference/interface.md, 2.2); did you mean "dta"?',
  ])
  expect(data(`${one}\n${two}`, 'data: { field1: "${f1}", field2: "${f2}" }')).toEqual([
    'customerId is not in the body, and the service asks for it (docs/reference/interface.md, 2.2)',
  ])
  expect(data(`${customer}\n${one}`, 'customerId: ${c}\ndata: { field1: "${f1}", filed2: x }')).toEqual([
    expect.stringMatching(/^data\.field2 is not in the body.*did you mean "filed2"/),
  ])
})

test.each([
  [
    'no maxLength',
    customer.replace('maxLength: 10, ', ''),
    /^customerId is c \(string\), and the service takes text of at most 10 characters.*maxLength: 10/,
  ],
  [
    'a longer one',
    customer.replace('10', '12'),
    /^customerId is c \(string\), and the service takes text of at most 10 characters/,
  ],
  [
    'a number',
    'c: { from: c, type: integer, required: true }',
    /^customerId is c \(integer\), and the service takes text/,
  ],
  ['a number as text', 'c: { from: c, type: integer, as: string, required: true }', /at most 10 characters/],
  [
    'a uuid',
    'c: { from: c, type: uuid, required: true }',
    /is c \(uuid\), and the service takes text of at most 10 characters/,
  ],
  [
    'an optional one',
    customer.replace(', required: true', ''),
    /^customerId is left out if the payload has no c.*make c required/,
  ],
  [
    'a long constant',
    'c: { constant: "12345678901", type: string }',
    /can be "12345678901", and the service takes text of at most 10 characters/,
  ],
  [
    'a long default',
    customer.replace('required: true', 'default: nobody').replace('10', '12'),
    /at most 10 characters/,
  ],
])('customerId with %s gives a warning', (_, field, warning) => {
  expect(data(`${field}\n${one}\n${two}`, body)).toEqual([expect.stringMatching(warning)])
})

test('a value that field1 does not take is named, wherever it comes from', () => {
  const of = (field: string) => data(`${customer}\n${field}\n${two}`, body)
  const outside =
    'data.field1 can be "valeu1", and the service takes value1, value2, value3 (type: enum); did you mean "value1"?'
  expect(of('f1: { from: f1, type: enum, values: [value2, valeu1], required: true }')).toEqual([outside])
  expect(of('f1: { constant: valeu1, type: string }')).toEqual([outside])
  expect(of('f1: { from: f1, type: string, lookup: { a: value1, b: valeu1 }, required: true }')).toEqual([outside])
  expect(of('f1: { from: f1, type: string, required: true }')).toEqual([expect.stringContaining('type: enum')])
  expect(data(`${customer}\n${two}`, 'customerId: ${c}\ndata: { field1: valeu1, field2: "${f2}" }')).toEqual([outside])
})

test('combined text, and a value of the wrong kind, give a warning', () => {
  expect(data(good, 'customerId: "K${c}"\ndata: { field1: "${f1}", field2: "${f2}" }')).toEqual([
    'customerId is put together of several parts, and the service takes text of at most 10 characters (type: string, maxLength: 10)',
  ])
  expect(data(good, 'customerId: ${c}\ndata: ["${f1}", "${f2}"]')).toEqual([
    'data has the wrong kind, and the service takes an object',
  ])
  expect(data(`${one}\n${two}`, 'customerId: 5\ndata: { field1: "${f1}", field2: "${f2}" }')).toEqual([
    'customerId has the wrong kind, and the service takes text of at most 10 characters (type: string, maxLength: 10)',
  ])
  expect(data(`${one}\n${two}`, 'customerId: "${submission.id}"\ndata: { field1: "${f1}", field2: "${f2}" }')).toEqual([
    expect.stringContaining('at most 10 characters'),
  ])
})

test('an order gives a warning without a uuid and a list', () => {
  const order = (field: string, items: string) =>
    findBodyWarnings(
      mappingFrom(
        `type: o\nendpoint: orders\nfields:\n  c: ${field}\n  i: ${items}\nbody: { customerId: "\${c}", items: "\${i}" }\n`,
      ),
    )
  expect(order('{ from: c, type: uuid, required: true }', '{ from: i, type: array, required: true }')).toEqual([])
  expect(order('{ from: c, type: string, required: true }', '{ from: i, type: string, required: true }')).toEqual([
    'customerId is c (string), and the service takes a uuid (type: uuid)',
    'items is i (string), and the service takes a list (type: array)',
  ])
})
