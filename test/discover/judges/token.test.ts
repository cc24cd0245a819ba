import { expect, test } from 'vitest'
import { judgeTokenLifetime } from '../../../src/discover/judges/token.ts'

const inSeconds = { expiresInUnitMs: 1_000, tokenRefreshMs: 300_000 }

test('a token that ends after expires_in seconds shows that the unit is seconds', () => {
  const finding = judgeTokenLifetime({ expiresIn: 3, goodForMs: 2_000, overAfterMs: 3_710 }, inSeconds)
  expect(finding).toMatchObject({ differs: false, contract: { expires_in: 'seconds' } })
  expect(finding.set).toMatchObject([{ variable: 'TOKEN_EXPIRES_IN_UNIT', value: 'seconds' }])
})

test('a token that ends before half of expires_in cannot be renewed in time', () => {
  expect(judgeTokenLifetime({ expiresIn: 86_400, goodForMs: 2_000, overAfterMs: 3_000 }, inSeconds)).toMatchObject({
    differs: true,
    cannot: expect.stringContaining('counts twice'),
  })
})

test('without an expires_in that is a number, the value to set is one', () => {
  const ended = { expiresIn: Number.NaN, goodForMs: 200_000, overAfterMs: 210_000 }
  const { why, set } = judgeTokenLifetime(ended, { expiresInUnitMs: 1_000, tokenRefreshMs: 30_000 })
  expect(set).toMatchObject([{ variable: 'TOKEN_REFRESH_SECONDS', value: '140' }])
  expect(why).toMatch(/^the answer has no expires_in that is a number/)
})
