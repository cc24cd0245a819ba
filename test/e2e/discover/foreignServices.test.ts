import { mkdtempSync, writeFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Asked, ask, customers } from '../../discover/ask.ts'
import { selfSigned } from '../../support/certificates.ts'
import { startForeignService } from '../../support/foreignService.ts'
import { listenOnLoopback } from '../../support/listenOnLoopback.ts'

/** Services by another author, with other choices. About each of them discover once was sure and wrong. */

const known = { ...customers, unknownCustomer: 'NOBODY' }
const sureOf = ({ findings }: Asked) =>
  Object.fromEntries(
    Object.entries(findings)
      .filter(([, { certainty }]) => certainty === 'sure')
      .map(([name, { found }]) => [name, found]),
  )
/** Windows of three seconds, so that a test does not wait for minutes. */
const quick = { RATE_LIMIT_WINDOW_SECONDS: '3', RATE_LIMIT_REQUESTS: '1000' }

test('a rule on the length of field2 does not affect findings about other fields', async () => {
  await using service = await startForeignService({ field2Max: 50 })
  const asked = await ask(service.url, known, quick)
  expect(sureOf(asked)).toMatchObject({
    'mapped-fields': 'ignored',
    'own-id': 'ignored',
    field2: 'below 1,000 characters',
    'unknown-customer': '400 E001',
    'status-values': 'accepted, pending, completed',
    idempotency: 'e002',
    'idempotency-form': 'either',
    'second-token': 'both valid',
  })
})

test('discover finds that a new token ends the first, because it renews no token meanwhile', async () => {
  await using service = await startForeignService({ isOneToken: true })
  const asked = await ask(service.url, { ...known, only: 'second-token,token-lifetime' }, quick)
  expect(asked.findings['second-token']).toMatchObject({
    found: 'ends the first',
    certainty: 'sure',
    cannot: expect.stringContaining('run one instance'),
  })
  expect(asked.findings['token-lifetime']).toMatchObject({ certainty: 'unknown' })
})

test('discover finds a limit without a header by counting twice, and waits out 429s on the way', async () => {
  await using service = await startForeignService({ limit: { requests: 60, windowMs: 8_000 } })
  const asked = await ask(service.url, { ...known, rate: true }, { RATE_LIMIT_WINDOW_SECONDS: '8' })
  expect(asked.findings['rate-limit']).toMatchObject({ found: '60', certainty: 'sure' })
  expect(asked.set).toMatchObject({ RATE_LIMIT_REQUESTS: '60' })
  expect(asked.findings['rate-failures']).toMatchObject({ certainty: 'unknown' })
  expect(Object.entries(asked.findings).filter(([, { certainty }]) => certainty === 'not asked')).toHaveLength(1)
})

test('for a service that demands a bare UUID as key, discover sets IDEMPOTENCY_KEY_FORM', async () => {
  await using service = await startForeignService({ demandsUuid: true, hiddenMs: 700 })
  const asked = await ask(service.url, known, quick)
  expect(asked.findings['idempotency-form']).toMatchObject({ found: 'bare', certainty: 'sure' })
  expect(asked.set).toMatchObject({ IDEMPOTENCY_KEY_FORM: 'bare', IDEMPOTENCY_HEADER: 'Idempotency-Key' })
  expect(asked.findings['order-unknown-customer']).toMatchObject({ found: '400 E001', certainty: 'sure' })
  expect(asked.seen.join('\n')).toMatch(/records were answered 404 at first/)
})

test('a 500 although the record had arrived is reported, and affects no finding', async () => {
  await using service = await startForeignService({ failsEach: 5 })
  const asked = await ask(service.url, { ...known, only: 'own-id,field2,unknown-customer' }, quick)
  expect(asked.seen.join('\n')).toMatch(/records had arrived although the first answer was a 5xx/)
  expect(asked.findings['own-id']).toMatchObject({ found: 'ignored' })
  expect(asked.findings.field2).toMatchObject({ found: 'any text' })
})

test.each([4, 5, 6, 7])('a 500 to every %i-th POST does not lead to a wrong finding about keys', async (failsEach) => {
  await using service = await startForeignService({ failsEach })
  const asked = await ask(service.url, { ...known, only: 'idempotency,idempotency-header' }, quick)
  expect(['e002', null]).toContain(asked.findings.idempotency?.found)
  expect(['Idempotency-Key', null]).toContain(asked.findings['idempotency-header']?.found)
})

test('discover does not ask for the next number as an unknown id if the service numbers its ids', async () => {
  await using service = await startForeignService({ countsIds: true })
  const asked = await ask(service.url, { ...known, only: 'own-id,field2,unknown-id' }, quick)
  expect(asked.findings['unknown-id']).toMatchObject({ found: '404', certainty: 'sure' })
})

test('discover calls the limits of a token bucket unknown, not a limit per second or per window', async () => {
  await using service = await startForeignService({ bucket: { size: 20, perSecond: 2 } })
  const only = 'rate-second,rate-failures'
  const asked = await ask(service.url, { ...known, only }, quick)
  for (const name of only.split(',')) expect(asked.findings[name]).toMatchObject({ certainty: 'unknown' })
})

test('if the service refuses the test record, discover names the field, and --record sends the operator’s own', async () => {
  await using service = await startForeignService({ field2Max: 8 })
  const refused = await ask(service.url, { ...known, only: 'submission,own-id' }, quick)
  expect(refused.findings.submission).toMatchObject({
    certainty: 'unknown',
    why: expect.stringMatching(/refused field2 of the test record.*--record FILE/),
  })
  expect(refused.findings['own-id']).toMatchObject({ certainty: 'not asked' })

  const folder = mkdtempSync(join(tmpdir(), 'record-'))
  const file = join(folder, 'body.json')
  writeFileSync(file, '{"customerId":"C9","data":{"field1":"value2","field2":"ABC-1234","total_amount":1.10}}')
  const { customer: _, ...others } = known
  const asked = await ask(service.url, { ...others, only: 'submission,own-id,field2', record: [file] }, quick)
  expect(asked.findings.submission).toMatchObject({ found: '200', certainty: 'sure' })
  expect(asked.findings.field2).toMatchObject({ found: 'below 1,000 characters', certainty: 'sure' })
})

test('with --type, discover maps the --record file like a payload of the outbox', async () => {
  await using service = await startForeignService({ field2Max: 8 })
  const folder = mkdtempSync(join(tmpdir(), 'record-'))
  const file = join(folder, 'payload.json')
  writeFileSync(file, '{"customerId":"C9","orderDate":"2026-11-21T10:00:00Z","amount":12.5,"field2":"ABC-1234"}')
  const env = { ...quick, MAPPINGS_DIR: join(import.meta.dirname, '../../../mappings') }
  const asked = await ask(service.url, { only: 'submission', record: [file], type: 'data' }, env)
  expect(asked.findings.submission).toMatchObject({ found: '200', certainty: 'sure' })
})

test('discover says if a service speaks only HTTP/2', async () => {
  const { key, cert } = selfSigned({ name: 'localhost', hosts: ['localhost'] })
  await using server = await listenOnLoopback(createSecureServer({ key, cert }) as never)
  const folder = mkdtempSync(join(tmpdir(), 'authority-'))
  writeFileSync(join(folder, 'ca.pem'), cert)
  const url = `https://localhost:${server.port}`
  const asked = await ask(url, { only: 'token-unit' }, { ...quick, SERVICE_CA_FILE: join(folder, 'ca.pem') })
  expect(asked.findings['token-unit']?.why).toContain('speaks only HTTP/2')
})
