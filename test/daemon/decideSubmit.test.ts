import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decideSubmit, type SubmitHistory, type SubmitVerdict } from '../../src/daemon/decideSubmit.ts'
import type { Answer } from '../../src/model/service.ts'
import type { ServerErrorPolicy, UncertainPolicy } from '../../src/model/submission.ts'
import type { Resource } from '../../src/resources.ts'
import { readSubmitAnswer } from '../../src/service/readAnswer.ts'
import { anyAnswer, noAnswer, response } from '../support/answers.ts'

/** docs/why/states.md, "What each status means", a POST; docs/why/contract.md, "To a POST", adds codes and waits. */
describe('200 or 201 with an id', () => {
  test.each([
    ['data', response(200, { transactionId: 'tx', status: 'accepted', timestamp: 'x' }), 'tx'],
    ['data', response(201, { transactionId: 'tx' }), 'tx'],
    ['orders', response(201, { orderId: 'o', status: 'pending', createdAt: 'x' }), 'o'],
    ['orders', response(200, { orderId: 'o' }), 'o'],
    ['data', response(200, { transactionId: 'E003', note: 'E002' }), 'E003'],
    ['data', response(200, { transactionId: 'tx', status: 'whatever' }), 'tx'],
  ] as const)('%s %j: accepted', (resource, answer, transactionId) => {
    expect(decide(answer, { resource })).toEqual({ kind: 'accepted', transactionId, breach: null })
  })
})

describe('a success with an id in Location only', () => {
  test.each([201, 202])('%i: accepted, because Location names what was created, or its status', (status) => {
    const answer = { ...response(status), locationId: 'tx-1' }
    expect(decide(answer)).toEqual({ kind: 'accepted', transactionId: 'tx-1', breach: null })
  })

  test.each([200, 203, 204])('%i: uncertain, because Location may name something else', (status) => {
    expect(kind(decide({ ...response(status), locationId: 'tx-1' }))).toBe('uncertain')
  })
})

describe('2xx with an id and a failed status (it was completed if its mapping said track: false)', () => {
  const untracked = { tracked: false }
  const failed = (more: object) => response(200, { transactionId: 'tx', ...more })

  test.each([
    [failed({ status: 'failed' }), null],
    [failed({ status: ' Rejected' }), null],
    [failed({ status: 'failed', errorCode: 'E001' }), 'E001'],
    [failed({ status: 'declined', code: 'E042' }), 'E042'],
  ])('%j: failed, tracked or not', (answer, code) => {
    for (const now of [{}, untracked]) expect(decide(answer, now)).toMatchObject({ kind: 'failed', code })
  })

  test('an error code beside another status: its poll decides, or without polls an operator', () => {
    for (const answer of [failed({ errorCode: 'E003' }), failed({ status: 'accepted', code: 'E001' })]) {
      expect(kind(decide(answer))).toBe('accepted')
      expect(decide(answer, untracked)).toMatchObject({ kind: 'uncertain', breach: 'unknown_status' })
    }
    expect(decide(failed({ status: 'accepted', code: 'E999' }), untracked)).toMatchObject({
      reason: expect.stringMatching(/^the service accepted the record as tx, with the error code E999 next to the id/),
    })
  })

  test('failed with E003: all sending pauses, and the record is sent with a new key, three times at most', () => {
    const answer = failed({ status: 'failed', errorCode: 'E003' })
    expect(decide(answer, untracked)).toMatchObject({ kind: 'renew-key', pause: { reason: 'unavailable' } })
    expect(decide(answer, { history: { resubmissions: 3 } })).toMatchObject({ kind: 'failed', code: 'E003' })
    expect(decide(answer, { history: { inDoubt: true } })).toMatchObject({
      kind: 'uncertain',
      reason: expect.stringContaining('an earlier attempt may have arrived'),
    })
  })

  test('failed with E003: a record that ends by it pauses nothing', () => {
    const answer = failed({ status: 'failed', errorCode: 'E003' })
    for (const history of [{ inDoubt: true }, { resubmissions: 3 }])
      expect(decide(answer, { history })).not.toHaveProperty('pause')
  })

  test('failed after a 503: E002 may mean that the 503 came too late, E003 does not', () => {
    const after503 = (errorCode: string) =>
      kind(decide(failed({ status: 'failed', errorCode }), { history: { answeredUnavailable: true } }))
    expect([after503('E002'), after503('E003')]).toEqual(['uncertain', 'renew-key'])
  })

  test('failed with E002: a new key, without a pause', () => {
    const answer = failed({ status: 'failed', errorCode: 'E002' })
    expect(decide(answer, untracked)).toMatchObject({ kind: 'renew-key', gaveId: true, pause: null })
  })

  test('any other status is not a failure', () => {
    for (const status of ['completed', 'created', 'whatever', 202])
      expect(kind(decide(failed({ status }), untracked))).toBe('accepted')
  })
})

describe('2xx that cannot be read, or has no id', () => {
  test.each(['hold', 'resend', 'probe'] as const)('uncertain and a breach, even under %s', (policy) => {
    const breachOf = (answer: Answer, resource: Resource = 'data') => {
      const verdict = decide(answer, { policy, resource })
      return verdict.kind === 'uncertain' ? verdict.breach : verdict
    }
    expect(breachOf(response(200, '<html>E003</html>'))).toBe('unreadable_answer')
    expect(breachOf(response(200))).toBe('unreadable_answer')
    expect(breachOf(response(204))).toBe('unreadable_answer')
    expect(breachOf(response(200, {}))).toBe('missing_id')
    expect(breachOf(response(200, { transactionId: '' }))).toBe('missing_id')
    expect(breachOf(response(200, { transactionId: 'tx' }), 'orders')).toBe('missing_id')
  })
})

describe('400 with E001', () => {
  test('rejected, with the code and the service’s words', () => {
    expect(decide(response(400, { code: 'E001', message: 'Invalid customer' }))).toEqual({
      kind: 'rejected',
      code: 'E001',
      reason: 'the service answered 400 E001: Invalid customer',
      leftTrace: false,
    })
  })
})

describe('E002, whatever the status', () => {
  const duplicates = [200, 400, 403, 409, 422, 429, 500, 503].map((status) => response(status, { code: 'E002' }))

  test.each(duplicates)('$status with no earlier attempt in doubt: a new idempotency key', (answer) => {
    expect(kind(decide(answer))).toBe('renew-key')
    expect(kind(decide(answer, { history: { renewedKeys: 2 } }))).toBe('renew-key')
  })

  test.each([
    [503, {}, false],
    [503, { transactionId: 'tx' }, true],
    [400, { code: 'E003', transactionId: 'tx' }, true],
    [429, { transactionId: 'tx' }, false],
  ])('a pause by %i %j: remembered only if the service is unavailable and names an id', (status, body, gaveId) => {
    expect(decide(response(status, body))).toMatchObject({ kind: 'pause', gaveId })
  })

  test('with an id: remembered, as the transaction may be the record’s', () => {
    const withId = response(409, { code: 'E002', transactionId: 'tx' })
    expect(decide(withId)).toMatchObject({ kind: 'renew-key', gaveId: true })
    expect(decide(withId, { history: { resubmissions: 3 } })).toMatchObject({ kind: 'failed', code: 'E002' })
    expect(decide(response(409, { code: 'E002' }))).toMatchObject({ kind: 'renew-key', gaveId: false })
  })

  test('after a 503: uncertain, because that attempt may have arrived', () => {
    const duplicate = response(409, { code: 'E002' })
    expect(kind(decide(duplicate, { history: { answeredUnavailable: true } }))).toBe('uncertain')
  })

  test('with three renewed keys: failed', () => {
    const verdict = decide(response(409, { code: 'E002' }), { history: { renewedKeys: 3 } })
    expect(verdict).toMatchObject({ kind: 'failed', code: 'E002' })
  })

  test.each(
    duplicates,
  )('$status with an earlier attempt in doubt: uncertain, because that attempt has probably arrived', (answer) => {
    expect(decide(answer, { history: { inDoubt: true } })).toMatchObject({
      kind: 'uncertain',
      code: 'E002',
      reason: expect.stringContaining('an earlier attempt has probably arrived'),
    })
  })

  test('after a 500, which may have stored the record: uncertain', () => {
    expect(kind(decide(response(409, { code: 'E002' }), { history: { serverErrors: 1 } }))).toBe('uncertain')
  })
})

describe('E003, whatever the status, or 503', () => {
  test.each([
    ...[200, 400, 403, 404, 429, 500, 502].map((status) => response(status, { code: 'E003' })),
    response(503),
    response(503, '<html>'),
  ])('$status $excerpt: pause `unavailable` for the configured time', (answer) => {
    expect(decide(answer)).toMatchObject({ kind: 'pause', pause: { reason: 'unavailable', askedMs: null } })
  })
})

describe('other 400, and any other 4xx', () => {
  test.each([
    [response(400, { code: 'E042', detail: 'no' }), 'E042', 'the service answered 400 E042: no'],
    [response(400), null, 'the service answered 400: without a body'],
    [
      response(400, 'article E003-17 is not for sale'),
      null,
      'the service answered 400: article E003-17 is not for sale',
    ],
    [response(400, { message: 'article E003-17' }), null, 'the service answered 400: article E003-17'],
    [response(404, { code: 'E001', detail: 'no' }), 'E001', 'the service answered 404 E001: no'],
    [response(413), null, 'the service answered 413: without a body'],
    [response(422, { code: 'E001' }), 'E001', 'the service answered 422: {"code":"E001"}'],
  ])('%j: rejected with the service’s words', (answer, code, reason) => {
    expect(decide(answer)).toEqual({ kind: 'rejected', code, reason, leftTrace: false })
  })

  test.each([
    response(408),
    response(409, 'seen before'),
    response(425),
    response(499),
    response(400, { code: 'E001', transactionId: 'tx-1' }),
    response(423, { transactionId: 'tx-1' }),
  ])('408, 409, 425, 499, or a refusal with an id (%j): rejected, may have arrived', (answer) => {
    expect(decide(answer)).toMatchObject({ kind: 'rejected', leftTrace: true })
  })

  test.each([
    { answer: response(400), is: 'rejected' },
    { answer: response(422, { code: 'E001' }), is: 'rejected' },
    { answer: response(409), is: 'uncertain' },
    { answer: response(422, 'seen before'), is: 'uncertain' },
  ])('after an attempt in doubt $answer.status $answer.excerpt: $is', ({ answer, is }) => {
    expect(kind(decide(answer, { history: { inDoubt: true } }))).toBe(is)
  })
})

describe('404, 405 and 410', () => {
  test.each([
    response(404),
    response(404, '<h1>not found</h1>'),
    response(404, { code: 'NOT_FOUND', status: 404 }),
    response(405),
    response(410, 'gone'),
  ])('%j: a pause that says where to look, and no verdict on the record (each was rejected for good)', (answer) => {
    const verdict = decide(answer, { history: { inDoubt: true } })
    expect(verdict).toMatchObject({
      kind: 'pause',
      pause: { reason: 'unreachable', detail: expect.stringMatching(/40[45]|410.*SERVICE_BASE_URL/) },
    })
    expect(decide(answer)).toEqual(verdict)
  })
})

describe('401', () => {
  test.each([
    'E001',
    'E002',
    'E003',
    'E042',
    'invalid_token',
  ])('with %s: still about the token, not the record (E002 failed records within a second)', (code) => {
    const answer = response(401, { code })
    expect(kind(decide(answer))).toBe('new-token')
    for (const inDoubt of [false, true])
      expect(decide(answer, { history: { repeatedAfter401: true, inDoubt } })).toMatchObject({
        kind: 'pause',
        pause: { reason: 'unauthorized' },
      })
  })

  test('the first: a new token', () => {
    expect(kind(decide(response(401)))).toBe('new-token')
  })

  test('a 401 due to the token’s age never counts as the second', () => {
    const again = { history: { repeatedAfter401: true }, hasTokenExpired: true }
    expect(decide(response(401), again)).toMatchObject({ kind: 'new-token', ofAge: true })
    expect(decide(response(403), again)).toMatchObject({ kind: 'pause' })
  })

  test('the second: pause `unauthorized`, with a hint at the allow-list', () => {
    expect(decide(response(401), { history: { repeatedAfter401: true } })).toMatchObject({
      kind: 'pause',
      pause: { reason: 'unauthorized', askedMs: null, detail: expect.stringContaining('allow-list') },
    })
  })
})

describe('403, 407 and redirects', () => {
  test.each([403, 407])('%i: pause unauthorized at once, and nothing arrived', (status) => {
    const unauthorized = { kind: 'pause', pause: { reason: 'unauthorized' }, mayHaveArrived: false }
    expect(decide(response(status))).toMatchObject(unauthorized)
    expect(decide(response(status, { code: 'E001' }))).toMatchObject(unauthorized)
  })

  test.each([
    301, 302, 305, 307, 308, 399,
  ])('%i: pause unauthorized at once, and the record may have arrived', (status) => {
    for (const code of [undefined, 'E001', 'E002', 'E003'])
      expect(decide(response(status, { code }))).toMatchObject({
        kind: 'pause',
        pause: { reason: 'unauthorized' },
        mayHaveArrived: true,
      })
  })

  test('a second redirect: uncertain but under `resend`, so that no copy follows each pause', () => {
    const history = { inDoubt: true }
    for (const policy of ['hold', 'probe'] as const)
      expect(decide(response(302), { history, policy })).toMatchObject({
        kind: 'uncertain',
        pause: { reason: 'unauthorized' },
      })
    expect(kind(decide(response(302), { history, policy: 'resend' }))).toBe('pause')
    expect(kind(decide(response(403), { history }))).toBe('pause')
  })

  test('a redirect says where it would have gone', () => {
    expect(decide(response(307, '(redirect to https://elsewhere/x) '))).toMatchObject({
      pause: { detail: expect.stringMatching(/elsewhere.*not followed.*SERVICE_BASE_URL/) },
    })
  })
})

describe('300, 303 and 304: the request was performed (each was sent again and again)', () => {
  const answers = [300, 303, 304].flatMap((status) =>
    [undefined, 'E001', 'E002', 'E003'].map((code) => response(status, { code })),
  )

  test.each(answers)('$status $code: uncertain, never sent again, whatever the policy', (answer) => {
    for (const policy of ['hold', 'resend', 'probe'] as const)
      expect(decide(answer, { policy })).toMatchObject({ kind: 'uncertain', breach: 'missing_id' })
  })

  test.each(
    answers,
  )('$status $code with a Location that ends in an id: the id is asked for, whatever the policy', (answer) => {
    for (const policy of ['hold', 'resend', 'probe'] as const)
      expect(decide({ ...answer, locationId: 'tx-1' }, { policy })).toMatchObject({
        kind: 'probe',
        transactionId: 'tx-1',
      })
  })
})

describe('a pause', () => {
  test('leaves the record queued, however often', () => {
    for (const answer of [response(403), response(503), response(400, '{"code":"E003"}')])
      expect(decide(answer)).toMatchObject({ kind: 'pause', mayHaveArrived: false })
    expect(decide(noAnswer({ sent: false, cause: 'network' }))).toMatchObject({ kind: 'pause', mayHaveArrived: false })
  })

  test('after a redirect: may have arrived; after an attempt in doubt: uncertain, unless it may be resent', () => {
    const history = { inDoubt: true }
    expect(decide(response(302))).toMatchObject({ kind: 'pause', mayHaveArrived: true })
    expect(decide(response(302), { history })).toMatchObject({ kind: 'uncertain', pause: { reason: 'unauthorized' } })
    expect(decide(response(302), { history, policy: 'resend' })).toMatchObject({ kind: 'pause', mayHaveArrived: true })
  })

  test('after 503 a refusal leaves open whether the 503 came too late, unless it judges the data', () => {
    const history = { answeredUnavailable: true }
    expect(decide(response(422), { history })).toMatchObject({ kind: 'rejected', leftTrace: true })
    expect(decide(response(400), { history })).toMatchObject({ kind: 'rejected', leftTrace: false })
    expect(decide(response(422, '{"code":"E001"}'), { history })).toMatchObject({ kind: 'rejected', leftTrace: false })
  })
})

describe('429', () => {
  test.each([
    [null, null],
    [0, 0],
    [7_000, 7_000],
    [3_600_000, 300_000],
  ])('with Retry-After %s ms: pause throttled, %s ms asked for', (retryAfterMs, askedMs) => {
    const verdict = decide(response(429, '', retryAfterMs))
    expect(verdict).toMatchObject({ kind: 'pause', pause: { reason: 'throttled', askedMs } })
  })
})

describe('500', () => {
  test('again after 1, 2 and 4 s, then failed', () => {
    const verdicts = [0, 1, 2, 3].map((serverErrors) => decide(response(500), { history: { serverErrors } }))
    expect(verdicts).toMatchObject([
      { kind: 'retry', afterMs: 1_000 },
      { kind: 'retry', afterMs: 2_000 },
      { kind: 'retry', afterMs: 4_000 },
      { kind: 'failed', code: null, reason: expect.stringContaining('3 retries did not help') },
    ])
  })

  test('with E001: retried as well, because a server error says nothing about the data', () => {
    expect(kind(decide(response(500, { code: 'E001' })))).toBe('retry')
  })

  test('under SERVER_ERRORS=hold: uncertain at once, whatever UNCERTAIN_POLICY says', () => {
    for (const policy of ['hold', 'resend', 'probe'] as const)
      expect(decide(response(500, { code: 'E001' }), { policy, serverErrorPolicy: 'hold' })).toMatchObject({
        kind: 'uncertain',
        code: 'E001',
        reason: expect.stringContaining('may have the record'),
      })
  })

  test('under SERVER_ERRORS=hold, E002 and E003 still decide before the status', () => {
    const held = (code: string) => kind(decide(response(500, { code }), { serverErrorPolicy: 'hold' }))
    expect([held('E002'), held('E003')]).toEqual(['renew-key', 'pause'])
  })
})

describe('other 5xx, timeout, connection lost after the request began to leave', () => {
  const inDoubt = [
    response(501),
    response(502, '<html>'),
    response(504),
    response(599),
    response(600),
    response(199),
    noAnswer({ sent: true, cause: 'timeout' }),
    noAnswer({ sent: true, cause: 'network' }),
  ]

  test.each(inDoubt)('%j under hold: uncertain, no breach', (answer) => {
    expect(decide(answer, { policy: 'hold' })).toMatchObject({ kind: 'uncertain', breach: null })
  })

  test.each(inDoubt)('%j under probe: ask the service', (answer) => {
    expect(kind(decide(answer, { policy: 'probe' }))).toBe('probe')
  })

  test.each(inDoubt)('%j under resend: again after 1, 2, 4 … 60 s', (answer) => {
    const waits = [1, 2, 3, 7, 9_999].map((attempt) => decide(answer, { policy: 'resend', attempt }))
    expect(waits).toMatchObject([1_000, 2_000, 4_000, 60_000, 60_000].map((afterMs) => ({ kind: 'resend', afterMs })))
  })
})

describe('could not connect', () => {
  test.each(['timeout', 'network'] as const)('%s: pause unreachable', (cause) => {
    expect(decide(noAnswer({ sent: false, cause }))).toMatchObject({ kind: 'pause', pause: { reason: 'unreachable' } })
  })
})

describe('whatever the answer and the history', () => {
  const history = fc.record({
    serverErrors: fc.nat(5),
    renewedKeys: fc.nat(5),
    inDoubt: fc.boolean(),
    repeatedAfter401: fc.boolean(),
    met: fc.option(
      fc.record({
        reason: fc.constantFrom('throttled' as const, 'unavailable' as const, 'unauthorized' as const),
        times: fc.integer({ min: 1, max: 2 }),
        othersThrough: fc.boolean(),
        othersRecovered: fc.boolean(),
      }),
    ),
  })
  const now = fc.record({
    history,
    policy: fc.constantFrom('hold' as const, 'resend' as const, 'probe' as const),
    attempt: fc.nat(10_000),
    resource: fc.constantFrom('data' as const, 'orders' as const),
  })
  const always = (holds: (verdict: SubmitVerdict, answer: Answer, now: Circumstances) => void) =>
    fc.assert(
      fc.property(anyAnswer, now, (answer, now) => holds(decide(answer, now), answer, now)),
      { numRuns: 2_000 },
    )

  test('there is a verdict, and every wait is a number between 0 and a minute', () => {
    always((verdict) => {
      expect(verdict.kind).toMatch(/^[a-z-]+$/)
      if ('afterMs' in verdict) expect(verdict.afterMs).toSatisfy((ms: number) => ms >= 0 && ms <= 60_000)
    })
  })

  test('a record that may have arrived is never sent again under hold', () => {
    always((verdict, answer, { policy }) => {
      if (policy !== 'hold') return
      expect(['resend', 'probe']).not.toContain(verdict.kind)
      if (answer.kind === 'no-answer' && answer.sent) expect(verdict.kind).toBe('uncertain')
    })
  })

  test('the key is never renewed when an earlier attempt may have arrived', () => {
    always((verdict, _answer, { history }) => {
      if (history?.inDoubt || (history?.serverErrors ?? 0) > 0) expect(verdict.kind).not.toBe('renew-key')
    })
  })

  test('a pause comes only if nothing arrived: never after a lost answer, a success with an id, or a bare 500', () => {
    always((verdict, answer) => {
      if (verdict.kind !== 'pause') return
      if (answer.kind === 'no-answer') expect(answer.sent).toBe(false)
      else if (answer.code !== 'E003')
        expect([401, 403, 404, 405, 407, 410, 429, 503]).toContain(answer.status < 400 ? 403 : answer.status)
    })
  })

  test('a record that is accepted has an id, and it came with a success', () => {
    always((verdict, answer) => {
      if (verdict.kind !== 'accepted') return
      expect(verdict.transactionId).not.toBe('')
      expect(answer).toMatchObject({ kind: 'response', status: expect.toSatisfy((s: number) => s >= 200 && s < 300) })
    })
  })

  test('whatever the history, a first 401 means a new token, and a second one no verdict on the record', () => {
    always((_verdict, _answer, now) => {
      const again = decide(response(401), now).kind
      const isFirst = !now.history?.repeatedAfter401
      if (isFirst) expect(again).toBe('new-token')
      else expect(again).toBe('pause')
    })
  })
})

interface Circumstances {
  resource?: Resource
  history?: Partial<SubmitHistory>
  policy?: UncertainPolicy
  serverErrorPolicy?: ServerErrorPolicy
  tracked?: boolean
  attempt?: number
  hasTokenExpired?: boolean
}

function decide(
  answer: Answer,
  {
    resource = 'data',
    history,
    policy = 'hold',
    serverErrorPolicy = 'retry',
    tracked = true,
    attempt = 1,
    hasTokenExpired = false,
  }: Circumstances = {},
) {
  const clean = {
    serverErrors: 0,
    renewedKeys: 0,
    resubmissions: 0,
    inDoubt: false,
    repeatedAfter401: false,
    answeredUnavailable: false,
  }
  const now = { history: { ...clean, ...history }, policy, serverErrorPolicy, tracked, attempt, hasTokenExpired }
  return decideSubmit(answer, readSubmitAnswer(answer, resource), now)
}

function kind(verdict: SubmitVerdict) {
  return verdict.kind
}
