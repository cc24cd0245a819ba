import { describe, expect, test } from 'vitest'
import type { Contract } from '../../src/config.ts'
import type { Answer, Breach } from '../../src/model/service.ts'
import type { AttemptResult, Submission } from '../../src/model/submission.ts'
import { findContractBreaches, Telemetry } from '../../src/observe/telemetry.ts'
import type { Endpoint } from '../../src/resources.ts'
import { requestOutcomeOf } from '../../src/service/readAnswer.ts'
import { noAnswer, response } from '../support/answers.ts'
import { asChange, type GivenChange } from '../support/change.ts'
import { submission } from '../support/submission.ts'

/** Telemetry whose log lines and metric calls are recorded, as `name(number, label values)` without a number of 1. */
function setup() {
  const lines: { level: string; message: string; fields: Record<string, unknown> }[] = []
  const counted: string[] = []
  const level =
    (name: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void lines.push({ level: name, message, fields })
  const count =
    (name: string) =>
    (value: number | null, labels: Record<string, string> = {}) =>
      void counted.push(`${name}(${[...(value === 1 ? [] : [value]), ...Object.values(labels)].join(', ')})`)
  const handle = (name: string) => ({ add: count(name), set: count(name), observe: count(name) })
  const metrics = new Proxy({}, { get: (_, name) => handle(String(name)) })
  const log = { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') }
  return {
    telemetry: new Telemetry({ log, metrics, outcomeOf: requestOutcomeOf, contract: null } as never),
    lines,
    counted,
  }
}

const worked = (change: GivenChange, answer: Answer | null, given: Partial<AttemptResult> = {}): AttemptResult => ({
  step: { change: asChange(change), cause: 'failed', message: null, pause: null },
  answer,
  breach: null,
  ...given,
})
const captured = (of: object = {}) => ({ id: 'id', outboxId: '1', type: 'data', error: null, createdAt: null, ...of })
const accepted: Partial<Submission> = { state: 'accepted', transactionId: 'tx', claimId: null }

describe('requests', () => {
  test.each<[string, Partial<Submission>]>([
    ['submit', {}],
    ['order', { resource: 'orders' }],
    ['status', accepted],
    ['order_status', { ...accepted, resource: 'orders' }],
    ['status', { probing: true }],
  ])('are counted under %s for %o', (endpoint, of) => {
    const { telemetry, counted } = setup()
    telemetry.attempted(submission(of), worked({ state: 'failed' }, response(200)))
    expect(counted).toEqual([`requests(${endpoint}, ok)`, `requestDuration(12, ${endpoint}, ok)`])
  })

  test('to a token issuer have codes of their own: a wrong secret is no breach', () => {
    const { telemetry, counted } = setup()
    telemetry.requestDone('token', response(401, { code: 'invalid_client' }))
    expect(counted).toEqual(['requests(token, unauthorized)', 'requestDuration(12, token, unauthorized)'])
  })

  test('are not counted if they were never made', () => {
    const { telemetry, counted } = setup()
    telemetry.attempted(submission(), worked({ state: 'queued' }, null))
    expect(counted).toEqual([])
  })

  test.each([
    [
      response(400, { code: 'E001' }),
      ['requests(submit, rejected)', 'requestDuration(12, submit, rejected)', 'serviceErrors(E001)'],
    ],
    [
      response(400, { code: 'E777' }),
      [
        'requests(submit, rejected)',
        'requestDuration(12, submit, rejected)',
        'serviceErrors(E777)',
        'breaches(unknown_code)',
      ],
    ],
    [noAnswer({ sent: true, cause: 'timeout' }), ['requests(submit, timeout)', 'requestDuration(12, submit, timeout)']],
  ])('%#: are counted by their code, and an unknown code as a breach', (answer, expected) => {
    const { telemetry, counted } = setup()
    telemetry.requestDone('submit', answer)
    expect(counted).toEqual(expected)
  })

  test('whose answer broke the contract are counted as a breach', () => {
    const { telemetry, counted } = setup()
    telemetry.attempted(submission(), worked({ state: 'uncertain' }, response(200), { breach: 'missing_id' }))
    expect(counted).toContain('breaches(missing_id)')
  })
})

describe('log lines', () => {
  test('are written once for each stage of a submission, at its end, with ids and without bodies', () => {
    const { telemetry, lines } = setup()
    telemetry.attempted(
      submission({ body: '{"secret":1}' }),
      worked({ state: 'accepted', transactionId: 'tx' }, response(201, {})),
    )
    expect(lines).toEqual([
      {
        level: 'info',
        message: 'submitted',
        fields: {
          submissionId: submission().id,
          outboxId: '1',
          attempt: 1,
          transactionId: 'tx',
          endpoint: 'submit',
          state: 'accepted',
          outcome: 'ok',
          status: 201,
          code: undefined,
          reason: undefined,
          detail: undefined,
          durationMs: 12,
        },
      },
    ])
  })

  test.each<[GivenChange, string]>([
    [{ state: 'completed' }, 'info'],
    [{ state: 'failed', errorCode: 'E9' }, 'warn'],
    [{ state: 'rejected' }, 'warn'],
    [{ state: 'uncertain' }, 'warn'],
    [{ state: 'queued' }, 'info'],
  ])('for %o have the level %s', (change, level) => {
    const { telemetry, lines } = setup()
    telemetry.attempted(submission(accepted), worked(change, response(200)))
    expect(lines).toMatchObject([{ level, message: 'tracked', fields: { state: change.state } }])
  })

  test('are not written for a poll that finds its transaction pending', () => {
    const { telemetry, lines } = setup()
    telemetry.attempted(submission(accepted), worked({ state: 'accepted', pollInMs: 1 }, response(200)))
    expect(lines).toEqual([])
  })

  test('name a pause with its reason, even if the state stays', () => {
    const { telemetry, lines } = setup()
    const pause = { reason: 'throttled', askedMs: null, detail: 'x' } as const
    const step = {
      change: asChange({ state: 'accepted', pollInMs: 0 }),
      cause: 'paused',
      message: null,
      pause,
    } as const
    telemetry.attempted(submission(accepted), { step, answer: response(429), breach: null })
    expect(lines).toMatchObject([{ fields: { reason: 'throttled', outcome: 'throttled' } }])
  })

  test('of a failed attempt have status, code and outcome, and nothing that the service said', () => {
    const { telemetry, lines } = setup()
    const refusal = response(400, { code: 'E001', message: 'customer Jane Doe is unknown' })
    telemetry.attempted(submission(), worked({ state: 'rejected', errorCode: 'E001' }, refusal))
    telemetry.attempted(submission(), worked({ state: 'uncertain' }, noAnswer({ sent: true, cause: 'timeout' })))
    expect(lines).toMatchObject([
      { level: 'warn', fields: { status: 400, code: 'E001', outcome: 'rejected' } },
      { level: 'warn', fields: { outcome: 'timeout', detail: expect.any(String) } },
    ])
    expect(JSON.stringify(lines)).not.toContain('Jane')
  })

  test('of a record that does not map have its fields and their mistakes, and it counts as rejected', () => {
    const { telemetry, lines, counted } = setup()
    const fieldErrors = [{ field: 'total_amount', kind: 'too_many_decimals' }]
    telemetry.captured([
      captured(),
      captured({ outboxId: '7', error: 'total_amount has 3 decimals: 1.234', fieldErrors }),
    ])
    expect(counted).toEqual(['finished(rejected)', 'finishedByType(data, rejected)', 'submissionDuration(, rejected)'])
    expect(lines).toMatchObject([
      { level: 'info', message: 'captured', fields: { count: 2 } },
      {
        level: 'warn',
        message: 'record does not fit its mapping and was rejected',
        fields: { outboxId: '7', type: 'data', fieldErrors },
      },
    ])
    expect(JSON.stringify(lines)).not.toContain('1.234')
  })

  test('about a change after sending has an event of its own, and it does not count as rejected', () => {
    const { telemetry, lines, counted } = setup()
    telemetry.captured([captured({ error: 'changed after it was sent as outbox:1', changedAfterSent: true })])
    expect(counted).toEqual([])
    expect(lines.at(-1)).toMatchObject({
      level: 'warn',
      message: 'document changed after it was sent, and the change was not sent',
    })
  })

  test('about rescued records and missing polls are written only if there were any', () => {
    const { telemetry, lines } = setup()
    telemetry.orphansRescued(0)
    telemetry.missingPollsInserted(0)
    telemetry.orphansRescued(2)
    telemetry.missingPollsInserted(3)
    telemetry.captured(Array.from({ length: 4 }, () => captured()))
    expect(lines.map(({ level, fields }) => [level, fields.count])).toEqual([
      ['warn', 2],
      ['warn', 3],
      ['info', 4],
    ])
  })
})

describe('written outcomes:', () => {
  const written = (state: Submission['state'], polls = 0, breach: Breach | null = null) => ({
    submissionId: 'a',
    type: 'data',
    state,
    lifetimeMs: 1_500,
    polls,
    breach,
  })

  test('each end is counted with its duration, and with its polls if it was tracked', () => {
    const { telemetry, counted } = setup()
    telemetry.outcomesWritten({
      written: [written('completed', 2), written('rejected'), written('accepted', 1)],
      heldBack: 0,
    })
    expect(counted).toEqual([
      'finished(completed)',
      'finishedByType(data, completed)',
      'submissionDuration(1500, completed)',
      'pollsPerTransaction(2)',
      'finished(rejected)',
      'finishedByType(data, rejected)',
      'submissionDuration(1500, rejected)',
    ])
  })

  test('a breach that was found while writing is counted and logged', () => {
    const { telemetry, counted, lines } = setup()
    telemetry.outcomesWritten({ written: [written('uncertain', 0, 'duplicate_id')], heldBack: 0 })
    expect(counted).toContain('breaches(duplicate_id)')
    expect(lines[0]).toMatchObject({ level: 'warn', fields: { submissionId: 'a' } })
  })

  test('replays and discards of operators are counted, and discards also by type', () => {
    const { telemetry, counted } = setup()
    telemetry.operatorActed({ replays: 2, discards: ['data', 'order'] })
    expect(counted).toEqual([
      'replays(2)',
      'finished(discarded)',
      'finishedByType(data, discarded)',
      'submissionDuration(, discarded)',
      'finished(discarded)',
      'finishedByType(order, discarded)',
      'submissionDuration(, discarded)',
    ])
  })

  test('requests held back are a breach, and are logged', () => {
    const { telemetry, counted, lines } = setup()
    telemetry.outcomesWritten({ written: [], heldBack: 12 })
    expect(counted).toEqual(['breaches(rate_limit_lower)'])
    expect(lines).toMatchObject([{ level: 'warn', fields: { count: 12 } }])
  })
})

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
