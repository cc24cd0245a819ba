import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileSecrets, redactAndBoundText } from '../../src/service/redactSecrets.ts'
import { anyString } from '../support/anyString.ts'

const redactSecretsFile = import.meta.resolve('../../src/service/redactSecrets.ts')

const units = (character: string) => Array.from({ length: character.length }, (_, i) => character.charCodeAt(i))
const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0')

/** Ways in which a service may repeat a character that is not a letter or digit. */
const spellings: Record<string, (character: string) => string> = {
  plain: (character) => character,
  'in an address': encodeURIComponent,
  'in a form': (character) => new URLSearchParams([['', character]]).toString().slice(1),
  'in a form in lower case': (character) =>
    new URLSearchParams([['', character]])
      .toString()
      .slice(1)
      .replace(/%../g, (byte) => byte.toLowerCase()),
  'in JSON': (character) => JSON.stringify(character).slice(1, -1),
  'in JSON with an escaped slash': (character) => (character === '/' ? '\\/' : character),
  'in ASCII JSON': (character) =>
    units(character)
      .map((unit) => `\\u${hex(unit, 4)}`)
      .join(''),
  'in JSON with upper case': (character) =>
    units(character)
      .map((unit) => `\\u${hex(unit, 4).toUpperCase()}`)
      .join(''),
  'as a decimal entity': (character) => `&#${character.codePointAt(0)};`,
  'as a hexadecimal entity': (character) => `&#x${hex(character.codePointAt(0) ?? 0, 4)};`,
}

const spelled = (character: string, spell: (character: string) => string) =>
  /[a-z0-9]/i.test(character) ? character : spell(character)

test.each(Object.entries(spellings))('a secret that is repeated %s is redacted', (_, spell) => {
  const secret = 'a+b/c~d e=f&g"h<i>j\\kéñ€😀\'l'
  const repeated = Array.from(secret, (character) => spelled(character, spell)).join('')
  expect(redactAndBoundText(`x ${repeated} y`, compileSecrets([secret]))).toBe('x [redacted] y')
})

test.each(['', 'a', 'id', 'id:', 'client:'])('a secret in Base64 behind %j is redacted', (before) => {
  const secret = 'a+b/c~d€😀?>secret'
  for (const after of ['', 'x', 'xy', 'xyz'])
    for (const form of ['base64', 'base64url'] as const) {
      const text = Buffer.from(before + secret + after).toString(form)
      const left = redactAndBoundText(`Basic ${text}`, compileSecrets([secret])).replace('[redacted]', '')
      expect(left.length).toBeLessThan('Basic '.length + 2 * (before.length + after.length) + 6)
      expect(redactAndBoundText(`Basic ${text}`, compileSecrets([secret]))).toContain('[redacted]')
    }
})

test('a secret is redacted if each of its signs is spelled in another way', () => {
  const character = anyString({ minLength: 1, maxLength: 1 }).filter((text) => text !== '\0')
  const characters = fc.array(fc.tuple(character, fc.constantFrom(...Object.values(spellings))), { minLength: 1 })
  fc.assert(
    fc.property(characters, (all) => {
      const secret = all.map(([each]) => each).join('')
      const repeated = all.map(([each, spell]) => spelled(each, spell)).join('')
      expect(redactAndBoundText(repeated, compileSecrets([secret]))).toBe('[redacted]')
    }),
  )
})

test('a secret is redacted if the process has compiled so many patterns that V8 optimizes no more', () => {
  const script = `import { compileSecrets, redactAndBoundText } from ${JSON.stringify(redactSecretsFile)}
    process.stdout.write(redactAndBoundText('%7B%7b', compileSecrets(['{{'])))`
  // In a process of its own, because the flag is the whole process's.
  const flags = ['--no-regexp-optimization', '--input-type=module', '--eval', script]
  expect(execFileSync(process.execPath, flags, { encoding: 'utf8' })).toBe('[redacted]')
})

test('a text without the secret stays as it is', () => {
  fc.assert(
    fc.property(anyString(), anyString({ minLength: 1 }), (text, secret) => {
      fc.pre(!text.includes(secret) && !/[%\\&+]/.test(text))
      expect(redactAndBoundText(text, compileSecrets([secret]))).toBe(redactAndBoundText(text, null))
    }),
  )
})

test.each([
  '\\',
  '&',
  '%',
  '=',
  '.',
  '+',
  ' ',
  '"',
  '/',
  'é',
  '%25',
  '&amp;',
  '\n',
])('a text that nearly has a secret of many %j is read in time, because each sign matches in one way', (sign) => {
  const text = sign.repeat(5_000)
  expect(redactAndBoundText(text, compileSecrets([`${sign.repeat(60)}x`]))).toBe(text)
})

test('a secret of 16,000 signs is redacted', () => {
  const secret = '-'.repeat(16_000)
  expect(redactAndBoundText(`x ${secret}`, compileSecrets([secret]))).toBe('x [redacted]')
})
