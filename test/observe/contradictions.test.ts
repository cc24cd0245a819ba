import { expect, test } from 'vitest'
import type { Contract } from '../../src/config.ts'
import type { Answer } from '../../src/model.ts'
import { findContractBreaches } from '../../src/observe/telemetry.ts'
import type { Endpoint } from '../../src/resources.ts'
import { noAnswer, response } from '../support/answers.ts'

const contract: Contract = {
  submit_ok: '200',
  order_ok: '201',
  status_unknown: '404',
  e001: '400',
  e002: '409',
  rate_remaining: 'all',
}

interface Given {
  status: number
  code?: string
  rateRemaining: number | null
}

const answerOf = ({ status, ...more }: Given): Answer => ({ ...response(status), ...more })

test.each<[Endpoint, Given, string[]]>([
  ['submit', { status: 200, rateRemaining: 5 }, []],
  ['submit', { status: 202, rateRemaining: 5 }, ['other_success_status']],
  ['order', { status: 200, rateRemaining: 5 }, ['other_success_status']],
  ['submit', { status: 400, code: 'E001', rateRemaining: 5 }, []],
  ['submit', { status: 422, code: 'E001', rateRemaining: 5 }, ['other_error_status']],
  ['submit', { status: 400, code: 'E002', rateRemaining: 5 }, ['other_error_status']],
  ['submit', { status: 400, code: 'E003', rateRemaining: 5 }, []],
  ['status', { status: 404, rateRemaining: 5 }, []],
  ['status', { status: 410, rateRemaining: 5 }, ['other_unknown_status']],
  ['status', { status: 401, rateRemaining: 5 }, []],
  ['status', { status: 200, rateRemaining: null }, ['no_rate_remaining']],
  ['status', { status: 502, rateRemaining: null }, []],
  ['token', { status: 400, rateRemaining: null }, []],
])('%s answered %j contradicts %j', (endpoint, answer, breaches) => {
  expect(findContractBreaches(contract, endpoint, answerOf(answer))).toEqual(breaches)
  expect(findContractBreaches(null, endpoint, answerOf(answer))).toEqual([])
  expect(findContractBreaches({}, endpoint, answerOf(answer))).toEqual([])
})

test('a missing answer contradicts nothing', () => {
  expect(findContractBreaches(contract, 'submit', noAnswer({ sent: true, cause: 'network' }))).toEqual([])
})
