import { expect, test } from 'vitest'
import type { Exchange } from '../../src/discover/exchange.ts'
import { judgeTokenLifetime } from '../../src/discover/judges/token.ts'
import { called, response } from './exchangeOf.ts'

const inSeconds = { expiresInUnitMs: 1_000, tokenRefreshMs: 300_000 }

test('a token that ends when expires_in says settles the unit, whatever it was taken for', () => {
  const exchanges = [
    granted('a', 0, 3),
    called('a', 2_000, 200, '/1'),
    called('a', 3_700, 401, '/2'),
    called('b', 3_800, 200, '/2'),
  ]
  const finding = judgeTokenLifetime(exchanges, inSeconds)
  expect(finding).toMatchObject({ differs: false, contract: { expires_in: 'seconds' } })
  expect(finding.set).toMatchObject([{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: 'seconds' }])
})

test('a 401 with a code of the service, or to the next token too, is no end of a token', () => {
  const withCode = [granted('a', 0, 3600), called('a', 500, 200, '/1'), called('a', 1_000, 401, '/2', 'E002')]
  expect(judgeTokenLifetime(withCode, inSeconds).certainty).toBe('unknown')
  const toBoth = [
    granted('a', 0, 3600),
    called('a', 500, 200, '/1'),
    called('a', 1_000, 401, '/odd'),
    granted('b', 1_100, 3600),
    called('b', 1_200, 401, '/odd'),
  ]
  expect(judgeTokenLifetime(toBoth, inSeconds).certainty).toBe('unknown')
})

test('a token that was refused after a newer one came did not end by its age', () => {
  const exchanges = [
    granted('a', 0, 3600),
    called('a', 500, 200, '/1'),
    granted('b', 600, 3600),
    called('a', 700, 401, '/1'),
  ]
  expect(judgeTokenLifetime(exchanges, inSeconds).certainty).toBe('unknown')
})

function granted(token: string, startedAtMs: number, expiresIn: number): Exchange {
  const json = { access_token: token, token_type: 'Bearer', expires_in: expiresIn }
  return { ...called('', startedAtMs, 200, '/oauth/token'), accessToken: null, answer: response(200, json) }
}
