import { expect, test } from 'vitest'
import { judgeStatusValues } from '../../src/discover/judges/records.ts'
import { called, response } from './exchangeOf.ts'

const polls = (...statuses: (string | null)[]) =>
  statuses.map((status, i) => ({
    ...called('token', i, 200, '/api/v1/data/1'),
    answer: status === null ? response(401, {}) : response(200, { status }),
  }))

test('the statuses of a transaction are sure once its end was seen', () => {
  const found = judgeStatusValues({ polls: polls('pending', null, 'completed') })
  expect(found).toMatchObject({ found: 'pending, completed', certainty: 'sure' })
})

test('where its end was not seen, as nobody let this ask any more, that is said', () => {
  const found = judgeStatusValues({ polls: polls('pending', null, null) })
  expect(found).toMatchObject({
    found: 'pending',
    certainty: 'likely',
    why: expect.stringContaining('its end was not seen'),
  })
})
