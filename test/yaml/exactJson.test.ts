import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readPayload, writeJson } from '../../src/yaml/exactJson.ts'
import { numRuns } from '../mapping/mappingOf.ts'

function outcomeOf(text: string): string {
  const read = readPayload(text)
  return read.kind === 'invalid' ? read.message : writeJson(read.payload)
}

describe('a payload that cannot be trusted is an error and no crash:', () => {
  test.each([
    ['', /^is not JSON: /],
    ['{"a":1', /^is not JSON: /],
    ["{'a':1}", /^is not JSON: /],
    ['{"a":NaN}', /^is not JSON: /],
    ['{"a":01}', /^is not JSON: /],
    ['{"a" "b":1, "a":', /^is not JSON: /],
    ['"', /^is not JSON: /],
    ['"\\', /^is not JSON: /],
    ['[1]', /^is an array, not an object$/],
    ['1.5', /^is a number, not an object$/],
    ['null', /^is null, not an object$/],
    ['{"a":1,"a":1}', /^has the key "a" twice in one object: which one is meant\?$/],
    ['{"x":[{"a":1 , "\\u0061" : 2}]}', /^has the key "a" twice/],
    ['{"__proto__":{"amount":1}}', /^contains the key "__proto__"/],
    ['{"a":{"_\\u005fproto__":1}}', /^contains the key "__proto__"/],
    [`${'['.repeat(1_000_000)}`, /^is nested deeper than 100 levels$/],
    [`{"a":${'['.repeat(101)}${']'.repeat(101)}}`, /^is nested deeper than 100 levels$/],
    [`{"a":${'{"a":'.repeat(200)}`, /^is nested deeper than 100 levels$/],
    [`"${'x'.repeat(10_000_000)}"`, /^is longer than 10000000 characters$/],
  ])('%.40s', (text, message) => {
    expect(outcomeOf(text)).toMatch(message)
  })
})

test('the same key in several objects, and text that looks like keys, is accepted', () => {
  const text = '{"a":{"a":[{"a":1},{"a":1}]},"b":"{\\"a\\":1,\\"a\\":","c\\"":"a","toString":1,"constructor":"[[["}'
  expect(outcomeOf(text)).toBe(text)
})

test('99 levels and a million digits are read unchanged', () => {
  const text = `{"a":${'['.repeat(99)}1.${'0'.repeat(1_000_000)}${']'.repeat(99)}}`
  expect(outcomeOf(text)).toBe(text)
})

test('exactly what JSON.parse reads is read, except for repeated keys', () => {
  const json = fc.json({ maxDepth: 6 })
  const broken = fc
    .tuple(json, fc.nat(), fc.constantFrom('"', '{', '}', ':', ',', '\\', '', 'e', '[', ' '))
    .map(spliced)
  fc.assert(
    fc.property(fc.oneof(json, broken, fc.string()), (text) => {
      const read = readPayload(text)
      if (read.kind === 'payload') expect(JSON.parse(writeJson(read.payload))).toEqual(JSON.parse(text))
      else if (read.message.startsWith('is not JSON')) expect(() => JSON.parse(text)).toThrow()
      else expect(read.message).toMatch(/^is .*, not an object$|^has the key .* twice|^contains the key "__proto__"/s)
    }),
    { numRuns },
  )
})

function spliced([text, at, piece]: [string, number, string]): string {
  const cut = at % (text.length + 1)
  return text.slice(0, cut) + piece + text.slice(cut + 1)
}
