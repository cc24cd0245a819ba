import { expect, test } from 'vitest'
import { generationsNow, type TokenGenerations } from '../../src/sandbox/gate/issuedTokens.ts'

const a = { id: 'a', secret: 'one' }
const generationOf = (kept: TokenGenerations, id: string) => kept[id]?.generation

test('a client that stays as it is keeps its generation, whoever comes and goes beside it', () => {
  const before = generationsNow({}, [a, { id: 'b', secret: 'x' }], 7, 'key')
  const after = generationsNow(before, [{ id: 'c', secret: 'y' }, a], 7, 'key')
  expect([generationOf(before, 'a'), generationOf(after, 'a'), generationOf(after, 'c')]).toEqual([7, 7, 7])
})

test('another secret, or a return, begins the next generation', () => {
  const first = generationsNow({}, [a], 1, 'key')
  const changed = generationsNow(first, [{ ...a, secret: 'two' }], 1, 'key')
  const gone = generationsNow(changed, [], 1, 'key')
  const back = generationsNow(gone, [{ ...a, secret: 'two' }], 1, 'key')
  expect([first, changed, gone, back].map((kept) => generationOf(kept, 'a'))).toEqual([1, 2, 2, 3])
  expect(gone.a?.fingerprint).toBeNull()
})

test('a fingerprint tells neither the secret nor that two clients have the same', () => {
  const { a: one, b: other } = generationsNow({}, [a, { id: 'b', secret: 'one' }], 1, 'key')
  expect(one?.fingerprint).not.toBe(other?.fingerprint)
  expect(one?.fingerprint).not.toBe(generationsNow({}, [a], 1, 'other key').a?.fingerprint)
})
