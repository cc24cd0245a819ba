import { expect, test } from 'vitest'
import type { AnsweredExchange } from '../../../src/discover/exchange.ts'
import { judgeStatusValues } from '../../../src/discover/judges/records.ts'
import { called, response } from '../exchangeOf.ts'

const polls = (...statuses: (string | null)[]) =>
  statuses.map((status, i) => ({
    ...called('token', i, 200, '/api/v1/data/1'),
    answer: status === null ? response(404, {}) : response(200, { status }),
  })) as AnsweredExchange[]

test('statuses are sure once two transactions showed the same statuses up to their ends', () => {
  const found = judgeStatusValues([polls('pending', 'completed'), polls(null, 'pending', 'completed')])
  expect(found).toMatchObject({ found: 'pending, completed', certainty: 'sure' })
})

test('statuses are only likely if two transactions showed different ones', () => {
  const found = judgeStatusValues([polls('accepted', 'pending', 'completed'), polls('pending', 'completed')])
  expect(found).toMatchObject({ found: 'accepted, pending, completed', certainty: 'likely' })
})

test('statuses are only likely if no transaction ended, and the finding says so', () => {
  const found = judgeStatusValues([polls('pending', null, null), polls('pending')])
  expect(found).toMatchObject({
    found: 'pending',
    certainty: 'likely',
    why: expect.stringContaining('the end was not seen'),
  })
})
