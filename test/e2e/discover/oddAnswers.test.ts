import { describe, expect, test } from 'vitest'
import { checkDiscoveredContract } from '../../../src/commands/check/contract.ts'
import { discoveredContractSchema } from '../../../src/variableSchemas.ts'
import { type Asked, ask, customers } from '../../discover/ask.ts'
import { testContext } from '../../support/context.ts'
import { createDatabase } from '../../support/database.ts'
import { type ForeignChoices, startForeignService } from '../../support/foreignService.ts'

import { serviceEnvironment } from '../../support/serviceEnvironment.ts'

/** Services with one odd answer. Discover asks all that does not depend on it, and is not sure of what it cannot know. */

const known = { ...customers, unknownCustomer: 'NOBODY' }
const quick = { RATE_LIMIT_WINDOW_SECONDS: '3', RATE_LIMIT_REQUESTS: '1000' }

async function askService(choices: ForeignChoices, only?: string, env: Record<string, string> = {}): Promise<Asked> {
  await using service = await startForeignService(choices)
  return await ask(service.url, { ...known, ...(only === undefined ? {} : { only }) }, { ...quick, ...env })
}

const notAsked = ({ findings }: Asked) =>
  Object.entries(findings).flatMap(([name, { certainty }]) => (certainty === 'not asked' ? [name] : []))
/** Without --rate, --size and --slow. */
const never = ['body-size', 'rate-window', 'rate-limit', 'rate-throttled']

describe('an odd answer does not end the other questions:', () => {
  test.each<[string, ForeignChoices, string]>([
    ['403', { unknownId: { status: 403, body: { error: 'no' } } }, '403'],
    ['403, and so to each unknown path', { unknownId: { status: 403, body: {} }, forbidsUnknownPaths: true }, '403'],
    ['200', { unknownId: { status: 200, body: { status: 'unknown' } } }, '200'],
    ['200, and 403 to unknown paths', { unknownId: { status: 200, body: {} }, forbidsUnknownPaths: true }, '200'],
    ['410', { unknownId: { status: 410, body: {} } }, '410'],
  ])('an unknown id gets %s', async (_, choices, status) => {
    const asked = await askService(choices)
    expect(asked.findings.address?.found).toBe('let in')
    expect(asked.findings['unknown-id']).toMatchObject({ found: status, certainty: 'sure' })
    expect(asked.findings.submission).toMatchObject({ found: '200', certainty: 'sure' })
    expect(notAsked(asked)).toEqual(never)
  })

  test('a record gets 201 without a body', async () => {
    const asked = await askService({ bare: { status: 201, location: false } })
    expect(asked.findings.submission).toMatchObject({
      found: '201 without transactionId',
      cannot: expect.stringContaining('each record becomes uncertain'),
    })
    expect(asked.findings.field2).toMatchObject({ found: 'any text', certainty: 'sure' })
    expect(asked.findings['unknown-customer']).toMatchObject({ found: '400 E001', certainty: 'sure' })
    expect(asked.findings['status-values']).toMatchObject({ certainty: 'not asked' })
  })

  test.each([200, 503])('a page of maintenance with %i for a while', async (status) => {
    const startedMs = performance.now()
    const asked = await askService({ maintenance: { fromCall: 8, forMs: 7_000, status } }, 'submission,own-id,field2')
    expect(asked.findings).toMatchObject({
      submission: { found: '200', certainty: 'sure' },
      'own-id': { found: 'ignored', certainty: 'sure' },
      field2: { found: 'any text', certainty: 'sure' },
    })
    expect(performance.now() - startedMs).toBeGreaterThan(7_000)
  })
})

test.each([201, 202])('the id in Location of a %i is read', async (status) => {
  const asked = await askService({ bare: { status, location: true } }, 'submission,status-values,unknown-id')
  expect(asked.findings.submission).toMatchObject({ found: String(status), certainty: 'sure', cannot: null })
  expect(asked.findings['status-values']).toMatchObject({ found: 'accepted, pending, completed' })
  expect(asked.contract).toContain(`submit_ok=${status}`)
})

describe('a token that is redirected to a page to sign in is refused:', () => {
  const only = 'bad-token,second-token,token-lifetime'

  test('a false one', async () => {
    const { findings } = await askService({ redirectsToSignIn: true }, only)
    expect(findings['bad-token']).toMatchObject({ found: '302', differs: true })
    expect(findings['second-token']).toMatchObject({ found: 'both valid', certainty: 'sure' })
  })

  test('one that a new token has ended', async () => {
    const { findings } = await askService({ redirectsToSignIn: true, isOneToken: true }, only)
    expect(findings['second-token']).toMatchObject({ found: 'ends the first', certainty: 'sure' })
  })
})

describe('a key', () => {
  const only = 'idempotency,idempotency-header,idempotency-form'

  test.each(['x-idempotency-key', 'x-request-id', 'request-id'])('in %s is found', async (keyHeader) => {
    const { findings } = await askService({ keyHeader }, only)
    expect(findings['idempotency-header']?.found?.toLowerCase()).toBe(keyHeader)
    expect(findings.idempotency).toMatchObject({ found: 'e002', certainty: 'sure' })
  })

  test('in a header that no one names is sure not to be found only after all headers and forms', async () => {
    const { findings } = await askService({ keyHeader: 'x-secret-key' }, only)
    expect(findings['idempotency-header']).toMatchObject({
      found: 'none',
      certainty: 'sure',
      why: expect.stringContaining('X-Request-ID, Request-Id, quoted or bare, in both orders'),
    })
  })

  test('that is known only after a second is not sure to be ignored, and nothing is resent', async () => {
    const { findings, set } = await askService({ keyKnownAfterMs: 1_000 }, only)
    expect(findings.idempotency).toMatchObject({ certainty: 'unknown' })
    expect(findings['idempotency-header']?.certainty).not.toBe('sure')
    expect(set.UNCERTAIN_POLICY).toBe('hold')
  })
})

test('an order date that is required and may be any text is not called "not read"', async () => {
  const { findings } = await askService({ dateRequired: true }, 'mapped-fields,amount,order-date')
  expect(findings['order-date']).toMatchObject({ found: 'required, any text' })
})

test('a service that stores a record and answers 500 gets SERVER_ERRORS=hold', async () => {
  const { set } = await askService({ failsEach: 5 }, 'submission,own-id,field2,idempotency,server-errors')
  expect(set.SERVER_ERRORS).toBe('hold')
  expect(set.UNCERTAIN_POLICY).not.toBe('hold')
})

test('the length that the service says is the one to set', async () => {
  const { findings } = await askService({ field2Max: 50, saysLength: true }, 'field2')
  expect(findings.field2?.advice).toEqual([expect.stringContaining('maxLength: 50')])
})

test('a token bucket gets the rate that can be sustained, with which nothing is refused', async () => {
  await using service = await startForeignService({ bucket: { size: 60, perSecond: 6 } })
  const env = { RATE_LIMIT_WINDOW_SECONDS: '12', RATE_LIMIT_REQUESTS: '100' }
  const { findings, set } = await ask(service.url, { ...known, rate: true, only: 'rate-second,rate-limit' }, env)
  const [, atOnce, rate] = /^(\d+) at once, then (\d+) in 12 s$/.exec(findings['rate-limit']?.found ?? '') ?? []
  expect(Number(atOnce)).toBeGreaterThan(50)
  expect(Number(atOnce)).toBeLessThanOrEqual(61)
  expect(Number(rate)).toBeGreaterThan(58)
  expect(Number(rate)).toBeLessThanOrEqual(72)
  const perSecond = Number(set.RATE_LIMIT_REQUESTS) / Number(set.RATE_LIMIT_WINDOW_SECONDS)
  expect(perSecond).toBeGreaterThan(4.5)
  expect(perSecond).toBeLessThanOrEqual(6)
})

test.each<[string, ForeignChoices]>([
  ['403 to unknown ids', { unknownId: { status: 403, body: {} } }],
  ['403 to unknown ids and paths', { unknownId: { status: 403, body: {} }, forbidsUnknownPaths: true }],
  ['200 to unknown ids', { unknownId: { status: 200, body: { status: 'unknown' } } }],
  ['410 to unknown ids', { unknownId: { status: 410, body: {} } }],
  ['a redirect for a false token', { redirectsToSignIn: true }],
  ['201 without a body', { bare: { status: 201, location: true } }],
])('check --contract accepts the contract that discover wrote of a service with %s', async (_, choices) => {
  await using service = await startForeignService(choices)
  await using database = await createDatabase()
  const only = 'token-unit,submission,bad-token,unknown-id,unknown-path,unknown-order,rate-header'
  const { contract } = await ask(service.url, { ...known, only }, quick)
  const context = testContext({ DATABASE_URL: database.url, ...serviceEnvironment(service.url), ...quick })
  const findings = await checkDiscoveredContract(context, discoveredContractSchema.parse(contract))
  expect(findings.map(({ mark, message }) => [mark, message])).toEqual([['ok', expect.stringMatching(/^unchanged: /)]])
  const [{ message = '' } = {}] = findings
  for (const name of ['bad_token', 'status_unknown', 'unknown_path']) expect(message.split(';')[0]).toContain(name)
})
