import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { command as discover } from '../../src/commands/discover.ts'
import { planQuestions } from '../../src/discover/askQuestions.ts'
import { questions } from '../../src/discover/questions.ts'
import { ask, customers, foundIn } from '../discover/ask.ts'
import { setup } from '../sandbox/setup.ts'
import { testContext } from '../support/context.ts'
import { openForFile } from '../support/openForFile.ts'
import { credentials, serviceEnvironment } from '../support/serviceEnvironment.ts'

const service = openForFile(() => setup({ processingTime: 'constant:0.2' }))

const requestsMade = async () => (await service.control('GET', '/ledger?limit=1000')).rows.length
const folder = () => mkdtempSync(join(tmpdir(), 'discover-'))

test('discover finds the default settings of the sandbox as docs/why/contract.md describes them', async () => {
  const asked = await ask(service.sandbox.url, customers)
  expect(asked.code).toBe(0)
  expect(foundIn(asked)).toMatchObject({
    'token-unit': 'seconds',
    address: 'let in',
    'unknown-id': '404',
    'bad-token': '401',
    submission: '200',
    'status-values': 'pending, completed',
    idempotency: 'e002',
    'own-id': 'taken',
    'unknown-customer': '400 E001',
    amount: 'number or text',
    'order-date': 'milliseconds, UTC',
    'idempotency-form': 'either',
    order: '201',
    'rate-failures': 'yes',
    'error-body': 'read',
    'rate-header': 'all',
  })
  expect(asked.set).toMatchObject({ TOKEN_EXPIRES_IN_UNIT: 'seconds', UNCERTAIN_POLICY: 'resend' })
  for (const pair of ['expires_in=seconds', 'status_unknown=404', 'submit_ok=200', 'e002=409'])
    expect(asked.contract.split(' ')).toContain(pair)
})

describe('before the first request', () => {
  const env = () => serviceEnvironment(service.sandbox.url)

  test('discover says how many requests and records it plans, and sends nothing without a yes', async () => {
    const before = await requestsMade()
    const context = testContext({ ...env(), SERVICE_IS_TEST: 'yes' }, 'n\n')
    expect(await discover.action(context, { ledger: false, ...customers })).toBe(4)
    expect(context.messages()).toMatch(
      /\d+ questions to http.*: \d+ requests at most\.\nIt creates up to \d+ test records/,
    )
    expect(context.messages()).toContain('Nothing was sent.')
    expect(await requestsMade()).toBe(before)
  })

  test('an address that is not marked as a test environment is refused', async () => {
    const context = testContext(env())
    expect(await discover.action(context, { yes: true, ledger: false })).toBe(2)
    expect(context.messages()).toMatch(/is not marked as a test environment: set SERVICE_IS_TEST=yes/)
    const anyway = testContext(env())
    const only = 'token-unit'
    expect(await discover.action(anyway, { yes: true, ledger: false, only, yesThisIsATestEnvironment: true })).toBe(0)
  })

  test('without a ledger for the budget, discover names --no-ledger', async () => {
    const unnamed = testContext({ ...env(), SERVICE_IS_TEST: 'yes' })
    await expect(discover.action(unnamed, { yes: true })).rejects.toMatchObject({
      problems: [expect.stringMatching(/--no-ledger/)],
    })
    const away = testContext({ ...env(), SERVICE_IS_TEST: 'yes', DATABASE_URL: 'postgres://127.0.0.1:1/nowhere' })
    await expect(discover.action(away, { yes: true })).rejects.toThrow(/the ledger cannot be read.*--no-ledger/)
  })

  test('for an unknown question, discover suggests the name that was probably meant', async () => {
    const context = testContext({ ...env(), SERVICE_IS_TEST: 'yes' })
    expect(await discover.action(context, { yes: true, ledger: false, only: 'token-units' })).toBe(2)
    expect(context.messages()).toContain('did you mean token-unit?')
  })
})

test('without a customer no record is created, and each question says why it was not asked', async () => {
  const before = (await service.control('GET', '/transactions?limit=1000')).rows.length
  const { findings } = await ask(service.sandbox.url)
  expect(findings.submission).toMatchObject({ certainty: 'not asked', why: expect.stringContaining('--customer') })
  expect(findings.order).toMatchObject({ certainty: 'not asked', why: expect.stringContaining('--order-customer') })
  expect(findings['unknown-id']).toMatchObject({ found: '404' })
  expect((await service.control('GET', '/transactions?limit=1000')).rows.length).toBe(before)
})

test('--only asks only the named question, with the requests that it needs', async () => {
  const { findings, requests } = await ask(service.sandbox.url, { only: 'unknown-id' })
  expect(Object.keys(findings)).toEqual(['unknown-id'])
  expect(requests).toBe(4)
})

test('--write writes a file of variables without secrets, and does not overwrite a file without --yes', async () => {
  const file = join(folder(), '.env.discovered')
  await ask(service.sandbox.url, { only: 'token-unit,unknown-id', write: file })
  const text = readFileSync(file, 'utf8')
  expect(text).toMatch(/^# .*\nTOKEN_EXPIRES_IN_UNIT=seconds$/m)
  expect(text).toContain('DISCOVERED_CONTRACT="expires_in=seconds status_unknown=404"')
  expect(text).not.toContain(credentials.clientSecret)
  expect((await ask(service.sandbox.url, { write: file, yes: false })).code).toBe(2)
  expect(readFileSync(file, 'utf8')).toBe(text)
})

test('with --yes, discover overwrites only its own file, and not if nothing was found', async () => {
  const file = join(folder(), '.env.discovered')
  await ask(service.sandbox.url, { only: 'token-unit', write: file })
  const before = readFileSync(file, 'utf8')
  expect((await ask('http://127.0.0.1:1', { only: 'unknown-id', write: file })).code).toBe(1)
  expect(readFileSync(file, 'utf8')).toBe(before)
  await ask(service.sandbox.url, { only: 'token-unit,unknown-id', write: file })
  expect(readFileSync(file, 'utf8')).toContain('status_unknown=404')

  const other = join(folder(), '.env')
  writeFileSync(other, 'DATABASE_URL=postgres://somewhere')
  expect((await ask(service.sandbox.url, { only: 'token-unit', write: other })).code).toBe(2)
  expect(readFileSync(other, 'utf8')).toBe('DATABASE_URL=postgres://somewhere')
  expect((await ask(service.sandbox.url, { only: 'token-unit', save: dirname(other) })).code).toBe(2)
})

test('discover prints what it found even if the file cannot be written', async () => {
  const write = join(folder(), 'missing', '.env.discovered')
  const context = testContext({ ...serviceEnvironment(service.sandbox.url), SERVICE_IS_TEST: 'yes' })
  await expect(discover.action(context, { yes: true, ledger: false, only: 'token-unit', write })).rejects.toThrow(
    'ENOENT',
  )
  expect(context.printed()).toContain('token-unit')
})

test('--save writes each exchange, without token and secret', async () => {
  const dir = join(folder(), 'saved')
  await ask(service.sandbox.url, { ...customers, only: 'submission,bad-token', save: dir })
  const names = readdirSync(dir)
  expect(names).toEqual([
    '001-a-token.txt',
    '002-a-question-for-an-unknown-transaction.txt',
    '003-a-test-record.txt',
    '004-submission.txt',
    '005-a-false-token.txt',
    '006-a-false-token.txt',
  ])
  const texts = names.map((name) => readFileSync(join(dir, name), 'utf8'))
  for (const text of texts) {
    expect(text).not.toContain(credentials.clientSecret)
    expect(text).not.toMatch(/eyJ[\w-]{10,}/)
  }
  expect(texts[2]).toMatch(/POST .*\/api\/v1\/data\n.*authorization: \[redacted\]/s)
  expect(texts[2]).toContain('"status":"accepted"')
})

test('discover never makes more requests than --budget', async () => {
  for (const budget of [1, 2, 5, 17])
    expect((await ask(service.sandbox.url, { ...customers, budget })).requests).toBeLessThanOrEqual(budget)
})

test('a plan names the option that a question needs', () => {
  const given = { ...customers, customer: null, record: null, order: null, slow: false, rate: false, size: false }
  const none = planQuestions(questions, given, ['status-values'])
  expect(none).toMatchObject({ asked: [], notAsked: [{ why: expect.stringContaining('--customer') }] })
})

test('once --budget is used up, the remaining questions are not asked and say why', async () => {
  const { findings } = await ask(service.sandbox.url, { ...customers, only: 'token-unit,status-values', budget: 3 })
  expect(findings['token-unit']).toMatchObject({ found: 'seconds' })
  expect(findings['status-values']).toMatchObject({
    certainty: 'not asked',
    why: expect.stringMatching(/the 3 requests of --budget were used up/),
  })
})
