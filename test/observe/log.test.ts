import { describe, expect, test } from 'vitest'
import { createLog, type LogFields } from '../../src/observe/log.ts'
import { redactAndCut } from '../../src/observe/redact.ts'

describe('lines', () => {
  test('a line is one JSON object: level, ISO time, event, fields', () => {
    const { log, lines, text } = setup()
    log.info('submission ended', { submissionId: '42', state: 'completed', durationMs: 1200, transactionId: 'tx-1' })
    expect(text().trim().split('\n')).toHaveLength(1)
    expect(lines()[0]).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      event: 'submission ended',
      submissionId: '42',
      state: 'completed',
      durationMs: 1200,
      transactionId: 'tx-1',
    })
  })

  test('a log level suppresses the levels below it', () => {
    const { log, lines } = setup('error')
    log.info('a')
    log.warn('b')
    log.error('c')
    expect(lines().map(({ event }) => event)).toEqual(['c'])
  })

  test('a field that is not on the list is not written, even if the types allow it', () => {
    const { log, text } = setup()
    log.info('x', { payload: '{"customerId":"4711"}', body: 'Jane Doe', level: 'hacked' } as LogFields)
    expect(text()).not.toMatch(/4711|Jane|hacked/)
  })

  test('sentences are withheld in fields for a reason, a code or an identifier', () => {
    const { log, lines } = setup()
    log.warn('x', {
      reason: 'customer Jane Doe not found',
      code: 'the customer, Jane Doe',
      transactionId: 'Jane Doe',
      state: 'Jane Doe' as 'queued',
      count: 'Jane Doe' as unknown as number,
    })
    expect(JSON.stringify(lines())).not.toContain('Jane')
    expect(lines()[0]).toMatchObject({ reason: '[withheld]', code: '[withheld]', count: '[withheld]' })
  })

  test('a repeated error or warning is counted; one with other fields is a line of its own', () => {
    const { log, lines } = setup()
    for (let i = 0; i < 3; i++) log.error('a loop failed', { loop: 'capture', code: '42501' })
    log.error('a loop failed', { loop: 'report', code: '42501' })
    for (let i = 0; i < 2; i++) log.info('captured', { count: 1 })
    log.flush()
    expect(lines().at(-1)?.lastAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(lines().map(({ event, loop, repeated }) => [event, loop, repeated])).toEqual([
      ['a loop failed', 'capture', undefined],
      ['a loop failed', 'report', undefined],
      ['captured', undefined, undefined],
      ['captured', undefined, undefined],
      ['a loop failed', 'capture', 2],
    ])
  })

  test('for a field that did not map, only its name and the kind of mistake are written', () => {
    const { log, lines } = setup()
    const fieldErrors = [
      { field: 'total_amount', kind: 'too_large', message: 'Jane' },
      { field: 'Jane Doe', kind: 'Jane Doe' },
    ]
    log.warn('x', { fieldErrors })
    expect(lines()[0]?.fieldErrors).toEqual([
      { field: 'total_amount', kind: 'too_large' },
      { field: '[withheld]', kind: '[withheld]' },
    ])
  })

  test('a time field takes only times, and a detail is written on one line', () => {
    const { log, lines } = setup()
    log.warn('x', { until: '2026-11-21T10:00:00.000Z', detail: 'one\n  two' })
    log.warn('y', { until: 'Jane Doe', detail: { a: 'Jane' } as never })
    expect(lines()).toMatchObject([
      { until: '2026-11-21T10:00:00.000Z', detail: 'one two' },
      { until: '[withheld]', detail: '[withheld]' },
    ])
  })

  test('a line break in a value starts no second line', () => {
    const { log, lines } = setup()
    log.info('x\n{"event":"forged"}', { outboxId: '1\n2' })
    expect(lines()).toHaveLength(1)
  })
})

describe('errors', () => {
  test('a unique violation shows its code and severity, never its detail', () => {
    const error = Object.assign(new Error('duplicate key value violates unique constraint "customers_email_key"'), {
      name: 'error',
      code: '23505',
      severity: 'ERROR',
      detail: 'Key (email)=(jane@doe.example) already exists.',
      where: 'COPY customers, line 1: "jane"',
      parameters: ['jane@doe.example'],
    })
    expect(shown(error)).toEqual({
      class: 'error',
      message: 'duplicate key value violates unique constraint "customers_email_key"',
      code: '23505',
      severity: 'ERROR',
    })
  })

  test.each([
    ['22P02', 'invalid input syntax for type numeric: "Jane Doe"'],
    ['P0001', 'trigger says: no such customer Jane Doe'],
  ])('Postgres messages of class %s quote data and are withheld', (code, message) => {
    expect(shown(Object.assign(new Error(message), { code }))).toEqual({ class: 'Error', message: '[withheld]', code })
  })

  test('the message of JSON.parse quotes its text and is withheld', () => {
    expect(shown(thrownBy(() => JSON.parse('Jane Doe')))).toEqual({ class: 'SyntaxError', message: '[withheld]' })
  })

  test('the message of any other error is redacted', () => {
    expect(shown(new Error('connect postgres://erp:hunter2@db/erp: refused'))).toEqual({
      class: 'Error',
      message: 'connect postgres://[redacted]@db/erp: refused',
    })
  })

  test('a configuration that an error carries is not written', () => {
    const error = Object.assign(new Error('connection terminated'), {
      client: { connectionParameters: { password: 'hunter2', connectionString: 'postgres://erp:hunter2@db/erp' } },
      config: { headers: { authorization: 'Bearer hunter2' } },
      toJSON: () => ({ password: 'hunter2' }),
    })
    expect(shown(error)).toEqual({ class: 'Error', message: 'connection terminated' })
  })

  test('only the class names of causes and of parts are written', () => {
    const inner = new TypeError('postgres://erp:hunter2@db/erp')
    const middle = new Error('Bearer hunter2', { cause: inner })
    const error = new AggregateError([new RangeError('hunter2'), 'hunter2'], 'all failed', { cause: middle })
    expect(shown(error)).toEqual({
      class: 'AggregateError',
      message: 'all failed',
      causes: ['Error', 'TypeError'],
      errors: ['RangeError', 'string'],
    })
  })

  test('a system error shows its code, because an AggregateError of a refused connection has no message', () => {
    const error = Object.assign(new AggregateError([new Error('x')], ''), { code: 'ECONNREFUSED' })
    expect(shown(error)).toMatchObject({ class: 'AggregateError', code: 'ECONNREFUSED' })
  })

  test('a circular chain of causes ends', () => {
    const error = new Error('x')
    error.cause = error
    expect((shown(error) as { causes: string[] }).causes).toHaveLength(5)
  })

  test('an error that throws when it is read is still a line', () => {
    const error = Object.defineProperty(new Error('x'), 'message', {
      get() {
        throw new Error('hunter2')
      },
    })
    expect(shown(error)).toEqual({ class: 'Error', message: '[withheld]' })
  })

  test('a secret in a class name or code is not written either', () => {
    const error = Object.assign(new Error('x'), { name: 'Bearer hunter2', code: 'hunter2', severity: { a: 'hunter2' } })
    expect(shown(error)).toEqual({ class: 'Error', message: 'x' })
  })

  test.each([
    ['postgres://erp:hunter2@db/erp'],
    [{ password: 'hunter2' }],
    [7],
    [Symbol('hunter2')],
  ])('thrown values that are not errors are reduced, too: %s', (thrown) => {
    expect(JSON.stringify(shown(thrown))).not.toContain('hunter2')
  })
})

test.each([
  [
    'connect to postgres://erp:hunter2@db.example:5432/erp failed',
    'connect to postgres://[redacted]@db.example:5432/erp failed',
  ],
  ['postgresql://erp:hun@ter2@db/erp', 'postgresql://[redacted]@db/erp'],
  ['postgres://erp:hun ter2/x@db/erp', 'postgres://[redacted]@db/erp'],
  ['GET https://service.example/x?token=hunter2 failed', 'GET https://service.example/x?[redacted] failed'],
  ['header Authorization: Bearer hunter2.abc', 'header Authorization=[redacted] [redacted]'],
  ['sent bearer hunter2==', 'sent bearer [redacted]'],
  ['got eyJhbGciOi.eyJzdWIi.c2ln here', 'got [redacted] here'],
  ['{"client_secret":"hunter2 x","a":1}', '{"client_secret=[redacted],"a":1}'],
  ['host=db password=hunter2 user=erp', 'host=db password=[redacted] user=erp'],
  ['nothing to hide at https://service.example/api', 'nothing to hide at https://service.example/api'],
])('%s is written as %s', (text, clean) => {
  expect(redactAndCut(text)).toBe(clean)
})

test('a long message is cut, but not within a secret', () => {
  const text = redactAndCut(`${'x'.repeat(480)} postgres://erp:${'hunter2'.repeat(100)}@db/erp`)
  expect(text.length).toBeLessThanOrEqual(500)
  expect(text).not.toContain('hunter2')
})

test('lines of a record have its trace id only if traces are made', () => {
  const submissionId = '01a228d6-f8a4-7749-a2a4-1ee5eca5148d'
  const traced = setup('info', true)
  traced.log.info('submitted', { submissionId })
  traced.log.warn('paused', { reason: 'operator' })
  expect(traced.lines().map((line) => line.trace_id)).toEqual(['01a228d6f8a47749a2a41ee5eca5148d', undefined])
  const plain = setup()
  plain.log.info('submitted', { submissionId })
  expect(plain.lines()[0]).not.toHaveProperty('trace_id')
})

function setup(level = 'info', hasTraces = false) {
  let written = ''
  const destination = {
    write(line: string) {
      written += line
    },
    writeKept() {},
    fault: () => null,
  }
  const log = createLog(level, destination, hasTraces)
  const lines = (): Record<string, unknown>[] =>
    written
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  return { log, lines, text: () => written }
}

function shown(error: unknown): unknown {
  const { log, lines } = setup()
  log.error('x', { error })
  return lines()[0]?.error
}

function thrownBy(act: () => unknown): unknown {
  try {
    act()
  } catch (error) {
    return error
  }
}
