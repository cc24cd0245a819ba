import fc from 'fast-check'
import { expect, test } from 'vitest'
import { boundText, escapeNonAscii, escapeNonAsciiFields } from '../src/boundText.ts'
import { anyString } from './support/anyString.ts'

const anyText = fc.string({ unit: fc.constantFrom('a', '\0', '\ud800', '\udc00', '😀', '\u202e', '\n', '…') })

test('any text becomes well formed, without NUL, and no longer than asked', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 1, max: 20 }), (text, charsMax) => {
      const bounded = boundText(text, charsMax)
      expect(bounded.length).toBeLessThanOrEqual(charsMax)
      expect(bounded.isWellFormed()).toBe(true)
      expect(bounded).not.toContain('\0')
      expect(bounded.endsWith('…') || text.length <= charsMax).toBe(true)
    }),
  )
})

test('a short text stays as it is, and no surrogate pair is cut', () => {
  expect(boundText('E001', 64)).toBe('E001')
  expect(boundText('Grüße 😀', 8)).toBe('Grüße 😀')
  expect(boundText('Grüße 😀!', 8)).toBe('Grüße …')
  expect(boundText('a\0b\ud800')).toBe('a\uFFFDb\uFFFD')
})

test('an escaped text is ASCII and the same after JSON', () => {
  fc.assert(
    fc.property(anyString(), (text) => {
      const json = JSON.stringify({ a: escapeNonAscii(text) })
      expect(json).toMatch(/^[\0-\x7f]*$/)
      expect(JSON.parse(json)).toEqual({ a: text })
    }),
  )
  expect(JSON.stringify(escapeNonAsciiFields({ id: 'Ł"', n: 1, none: null }))).toBe(
    '{"id":"\\u0141\\"","n":1,"none":null}',
  )
})
