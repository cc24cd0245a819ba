import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decideTrack, type TrackHistory, type TrackVerdict } from '../../src/daemon/decideTrack.ts'
import type { Answer } from '../../src/model/service.ts'
import type { Resource } from '../../src/resources.ts'
import { readGetAnswer } from '../../src/service/readAnswer.ts'
import { anyAnswer, noAnswer, response } from '../support/answers.ts'

/** docs/why/states.md, "What each status means", a GET; docs/why/contract.md, "To a GET", adds codes and waits. */
describe('pending', () => {
  test.each([
    ['data', { transactionId: 'tx', status: 'pending' }],
    ['data', { transactionId: 'tx', status: 'accepted' }],
    ['data', { status: 'pending' }],
    ['data', { transactionId: 'tx', status: 'pending', errorCode: 'E003' }],
    ['orders', { orderId: 'tx', status: 'Pending', items: [] }],
  ] as const)('%s %j: poll again', (resource, body) => {
    expect(decide(response(200, body), { resource })).toEqual({ kind: 'pending' })
  })
})

test('an id that is a UUID may come back in capitals (it counted as another for ever); any other id may not', () => {
  const [lower, upper] = ['0193c1b2-0000-7000-8000-00000000000a', '0193C1B2-0000-7000-8000-00000000000A']
  const says = (transactionId: string) => response(200, { transactionId, status: 'completed' })
  expect(decide(says(upper), { transactionId: lower }).kind).toBe('completed')
  expect(decide(says(lower), { transactionId: upper }).kind).toBe('completed')
  expect(decide(says('TX'))).toMatchObject({ kind: 'ask-again', breach: 'other_transaction' })
})

describe('completed', () => {
  test('completed, with the result in the service’s own digits', () => {
    const answer = response(200, '{"transactionId":"tx","status":"completed","result":{"paid":1234.50}}')
    expect(decide(answer)).toEqual({ kind: 'completed', result: '{"paid":1234.50}' })
  })

  test('completed without a result, or with a result that mentions E003', () => {
    expect(decide(response(200, { transactionId: 'tx', status: 'completed' }))).toEqual({
      kind: 'completed',
      result: null,
    })
    const note = response(200, { transactionId: 'tx', status: 'completed', result: { note: 'E003' } })
    expect(decide(note).kind).toBe('completed')
  })

  test('an order: completed, with its other fields as the result', () => {
    const answer = response(200, '{"orderId":"tx","status":"completed","items":[{"price":1.10}]}')
    expect(decide(answer, { resource: 'orders' })).toEqual({
      kind: 'completed',
      result: '{"items":[{"price":1.10}]}',
    })
  })
})

describe('failed', () => {
  const failed = (errorCode?: string) => response(200, { transactionId: 'tx', status: 'failed', errorCode })

  test('with E003: submit again after 5 minutes with a new key, because the old key’s transaction has failed', () => {
    expect(decide(failed('E003'))).toMatchObject({ kind: 'resubmit', afterMs: 300_000, code: 'E003' })
  })

  test('with E002: submit again with a new key, at once', () => {
    expect(decide(failed('E002'))).toMatchObject({ kind: 'resubmit', afterMs: 0, code: 'E002' })
  })

  test('with E002 after a POST that was answered 503: uncertain, because that attempt may have arrived', () => {
    expect(decide(failed('E002'), { history: { answeredUnavailable: true } }).kind).toBe('uncertain')
  })

  test.each(['E002', 'E003'])('with %s after three resubmissions: failed', (code) => {
    expect(decide(failed(code), { history: { resubmissions: 2 } }).kind).toBe('resubmit')
    expect(decide(failed(code), { history: { resubmissions: 3 } })).toMatchObject({ kind: 'failed', code })
  })

  test('with E002 after an attempt in doubt: uncertain, because the duplicate may be our own', () => {
    const history = { inDoubt: true, resubmissions: 3 }
    expect(decide(failed('E002'), { history })).toMatchObject({ kind: 'uncertain', code: 'E002' })
    expect(decide(failed('E003'), { history: { inDoubt: true } }).kind).toBe('resubmit')
  })

  test('with E003 after three resubmissions and an attempt in doubt: uncertain, because that attempt may stand', () => {
    const kindAfter = (resubmissions: number) =>
      decide(failed('E003'), { history: { inDoubt: true, resubmissions } }).kind
    expect([kindAfter(2), kindAfter(3)]).toEqual(['resubmit', 'uncertain'])
  })

  test.each([
    'E002',
    'E003',
  ])('with %s under an id that an operator gave: failed, because the transaction may be another record’s', (code) => {
    expect(decide(failed(code), { history: { idByPerson: true } })).toMatchObject({ kind: 'failed', code })
  })

  test.each(['E001', 'E042', undefined])('with %s: failed with the code', (code) => {
    expect(decide(failed(code))).toMatchObject({ kind: 'failed', code: code ?? null })
  })

  test('the reason names the code, if there is one', () => {
    expect(decide(failed('E042'))).toMatchObject({ reason: expect.stringContaining('E042') })
    expect(decide(failed())).toMatchObject({ reason: expect.stringContaining('without a code') })
  })
})

describe('404', () => {
  test('unknown for ten minutes, but polled only twice because of a pause: poll again', () => {
    const history = { unknownForMs: 700_000, fruitless: 1 }
    expect(decide(response(404), { history })).toMatchObject({ kind: 'ask-again', unknown: true })
  })

  test.each([null, 0, 599_999])('unknown for %s ms, however often polled: poll again', (unknownForMs) => {
    const history = { unknownForMs, fruitless: 100 }
    expect(decide(response(404), { history })).toMatchObject({ kind: 'ask-again', unknown: true })
  })

  test('unknown for ten minutes: lost, even if an operator gave the id', () => {
    const history = { unknownForMs: 600_000, fruitless: 5 }
    expect(decide(response(404), { history })).toMatchObject({ kind: 'lost', idByPerson: false })
    const byPerson = decide(response(404), { history: { ...history, idByPerson: true } })
    expect(byPerson).toMatchObject({
      kind: 'lost',
      idByPerson: true,
      reason: expect.stringContaining('does not know tx'),
    })
  })
})

describe('500, timeouts, lost connections, and refused polls', () => {
  test.each([
    response(500),
    response(502, '<html>'),
    response(504),
    response(400, { code: 'E001' }),
    response(409, { code: 'E002' }),
    response(410),
    noAnswer({ sent: true, cause: 'timeout' }),
    noAnswer({ sent: true, cause: 'network' }),
  ])('polls fail for ever (%j): polled less and less often, down to once a minute', (answer) => {
    const waits = [0, 1, 5, 6, 100_000].map((fruitless) => decide(answer, { history: { fruitless } }))
    expect(waits).toMatchObject(
      [1_000, 2_000, 32_000, 60_000, 60_000].map((afterMs) => ({
        kind: 'ask-again',
        afterMs,
        unknown: false,
        breach: null,
      })),
    )
  })
})

test('the wait grows with the age of the transaction: up to a quarter of it, an hour at most', () => {
  const hour = 3_600_000
  const waits = [0, 240_000, hour, 4 * hour, 100 * hour].map((ageMs) =>
    decide(response(410), { ageMs, history: { fruitless: 100 } }),
  )
  expect(waits).toMatchObject([60_000, 60_000, 900_000, hour, hour].map((afterMs) => ({ afterMs })))
})

describe('a breach of contract', () => {
  test.each([
    ['data', response(200, { transactionId: 'tx', status: 'cancelled' }), 'unknown_status'],
    ['data', response(200, { transactionId: 'tx', status: '' }), 'unknown_status'],
    ['orders', response(200, { orderId: 'tx', status: 'shipped' }), 'unknown_status'],
    ['data', response(200, { transactionId: 'other', status: 'completed' }), 'other_transaction'],
    ['orders', response(200, { orderId: 'other', status: 'failed' }), 'other_transaction'],
    ['data', response(200, '<html>'), 'unreadable_answer'],
    ['data', response(200, {}), 'unreadable_answer'],
    ['data', response(204), 'unreadable_answer'],
  ] as const)('%s %j: poll again, and count the breach', (resource, answer, breach) => {
    expect(decide(answer, { resource })).toMatchObject({ kind: 'ask-again', breach, unknown: false })
  })

  test('an unknown status is kept, and no other answer is taken for one', () => {
    const answered = (status: string) => decide(response(200, { transactionId: 'tx', status }))
    expect(answered('Archived')).toMatchObject({ foreignStatus: 'archived' })
    for (const known of [answered('pending'), answered('completed'), decide(response(500)), decide(response(200, {}))])
      expect(known).not.toHaveProperty('foreignStatus')
  })
})

describe('401, 403, 429, E003 as for a POST', () => {
  test('a 401 due to the token’s age never counts as the second', () => {
    const again = { history: { repeatedAfter401: true }, hasTokenExpired: true }
    expect(decide(response(401), again)).toMatchObject({ kind: 'new-token', ofAge: true })
  })

  test('a first 401: a new token; a second: pause unauthorized', () => {
    expect(decide(response(401)).kind).toBe('new-token')
    expect(decide(response(401), { history: { repeatedAfter401: true } })).toMatchObject({
      pause: { reason: 'unauthorized' },
    })
  })

  test.each([
    [response(403), 'unauthorized'],
    [response(302), 'unauthorized'],
    [response(429, '', 2_000), 'throttled'],
    [response(503), 'unavailable'],
    [response(404, { code: 'E003' }), 'unavailable'],
    [response(200, { code: 'E003' }), 'unavailable'],
    [noAnswer({ sent: false, cause: 'network' }), 'unreachable'],
  ] as const)('%j: pause %s', (answer, reason) => {
    expect(decide(answer)).toMatchObject({ kind: 'pause', pause: { reason } })
  })
})

describe('whatever the answer and the history', () => {
  const now = fc.record({
    resource: fc.constantFrom('data' as const, 'orders' as const),
    history: fc.record({
      unknownForMs: fc.option(fc.nat(2_000_000)),
      resubmissions: fc.nat(5),
      fruitless: fc.nat(100_000),
      repeatedAfter401: fc.boolean(),
      inDoubt: fc.boolean(),
      idByPerson: fc.boolean(),
      answeredUnavailable: fc.boolean(),
    }),
  })
  const always = (holds: (verdict: TrackVerdict, answer: Answer, now: Circumstances) => void) =>
    fc.assert(
      fc.property(anyAnswer, now, (answer, now) => holds(decide(answer, now), answer, now)),
      { numRuns: 2_000 },
    )

  test('there is a verdict, and its wait is within the limits', () => {
    always((verdict) => {
      expect(verdict.kind).toMatch(/^[a-z-]+$/)
      if (verdict.kind === 'ask-again') expect(verdict.afterMs).toSatisfy((ms: number) => ms >= 1_000 && ms <= 60_000)
    })
  })

  test('only an answer of the service makes a record fail, complete or be submitted again', () => {
    always((verdict, answer) => {
      if (verdict.kind !== 'failed' && verdict.kind !== 'completed' && verdict.kind !== 'resubmit') return
      if (answer.kind === 'no-answer') throw new Error('without an answer')
      if (answer.status !== 404)
        expect(answer.json).toMatchObject({ status: verdict.kind.replace('resubmit', 'failed') })
    })
  })

  test('no record is submitted again more than three times', () => {
    always((verdict, _answer, { history }) => {
      if ((history?.resubmissions ?? 0) >= 3) expect(verdict.kind).not.toBe('resubmit')
    })
  })
})

interface Circumstances {
  resource?: Resource
  transactionId?: string
  ageMs?: number
  history?: Partial<TrackHistory>
  hasTokenExpired?: boolean
}

function decide(
  answer: Answer,
  { resource = 'data', transactionId = 'tx', ageMs = 0, history, hasTokenExpired = false }: Circumstances = {},
) {
  const clean = {
    unknownForMs: null,
    answeredUnavailable: false,
    resubmissions: 0,
    fruitless: 0,
    repeatedAfter401: false,
    inDoubt: false,
    idByPerson: false,
  }
  const now = { transactionId, ageMs, history: { ...clean, ...history }, hasTokenExpired, unavailableMs: 300_000 }
  return decideTrack(answer, readGetAnswer(answer, resource), now)
}
