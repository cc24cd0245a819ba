import { readFileSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { readMapping } from '../../../src/mapping/readMapping.ts'
import type { SettingsPatch } from '../../../src/sandbox/sandboxSettings.ts'
import { type Asked, ask, customers, foundIn } from '../../discover/ask.ts'
import { setup } from '../../sandbox/setup.ts'
import { openForFile } from '../../support/openForFile.ts'

/**
 * Discover finds out, from answers over the socket only, what a service does in the cases that the interface leaves
 * open.
 */

const service = openForFile(() => setup({ processingTime: 'constant:0.4' }))
beforeEach(() => service.control('DELETE', '/settings'))

const set = (settings: SettingsPatch) => service.control('PATCH', '/settings', settings)

async function askOf(settings: SettingsPatch, only?: string, env: Record<string, string> = {}): Promise<Asked> {
  await set(settings)
  return ask(
    service.sandbox.url,
    { ...customers, ...(only === undefined ? {} : { only }) },
    { RATE_LIMIT_REQUESTS: '10000', ...env },
  )
}

/** The order depends on how long each record is processed; `pending` may be missed. */
function statusesInAnyOrder(first: string) {
  const one = `(${first}|pending|completed)`
  return expect.stringMatching(`^(?=.*${first})(?=.*completed)${one}(, ${one}){1,2}$`)
}

describe('discover finds each difference of a service', () => {
  test('of an older kind', async () => {
    const asked = await askOf({
      newTokenEndsOld: true,
      expiresInUnit: 'milliseconds',
      tokenForm: 'opaque',
      tokenMoreFields: true,
      errorShape: 'error',
      wwwAuthenticate: 'none',
      unknownIdStatus: 400,
      wrongMethodStatus: 404,
      invalidCustomerCode: 'E001',
      field2Empty: false,
      mappedFields: 'top',
      mappedFieldsRequired: true,
      amountForm: 'text',
      dateFractions: false,
      dateOffsets: 'z',
      idempotency: 'replay',
      idempotencyHeaders: ['X-Idempotency-Key'],
      ownIds: 'ignored',
      transactionIdForm: 'digits',
      firstStatus: 'accepted',
      resultShape: 'list',
      orderItems: 'sku',
      createdAtOnRead: false,
      rateLimitPolls: false,
      rateLimitOrders: 'apart',
      remainingHeader: 'api',
    })
    expect(foundIn(asked)).toMatchObject({
      'token-unit': 'milliseconds',
      'second-token': 'ends the first',
      'error-body': 'read',
      'unknown-id': '400',
      field2: 'not empty',
      'mapped-fields': 'beside data, required',
      amount: 'text',
      'order-date': 'whole seconds, only Z',
      idempotency: 'replay',
      'idempotency-header': 'X-Idempotency-Key',
      'own-id': 'ignored',
      'status-values': statusesInAnyOrder('accepted'),
      'order-item-shape': 'objects with certain fields',
      'rate-failures': 'yes',
    })
    expect(asked.findings['token-unit']).toMatchObject({ certainty: 'likely', differs: true })
    expect(asked.set).toEqual({
      TOKEN_EXPIRES_IN_UNIT: 'milliseconds',
      UNCERTAIN_POLICY: 'resend',
      IDEMPOTENCY_HEADER: 'X-Idempotency-Key',
    })
  })

  test('that is behind a gateway and ignores idempotency keys', async () => {
    const asked = await askOf({
      expiresInForm: 'text',
      errorShape: 'html',
      unauthorizedShape: 'empty',
      unknownIdStatus: 410,
      oddIdStatus: 403,
      e001Status: 404,
      field2LengthMax: 200,
      mappedFields: 'refused',
      idempotency: 'ignore',
      ownIds: 'refused',
      transactionIdForm: 'odd',
      firstStatus: 'processing',
      resultShape: 'absent',
      orderItems: 'filled',
      orderFirstStatus: 'open',
      orderLastStatus: 'done',
      rateLimitScope: 'token',
      rateLimitTokens: true,
      remainingHeader: 'none',
    })
    expect(foundIn(asked)).toMatchObject({
      'token-unit': 'seconds',
      'error-body': 'not read',
      'unknown-id': '403', // as the service's own ids are odd, too
      field2: 'below 1,000 characters',
      'mapped-fields': 'refused',
      idempotency: 'ignored',
      'idempotency-header': 'none',
      'own-id': 'refused',
      'status-values': statusesInAnyOrder('processing'),
      'order-item-shape': 'not empty',
      'order-status': 'open, done',
      'unknown-customer': '404',
      'rate-header': 'none',
    })
    const cannot = (name: string) => asked.findings[name]?.cannot
    expect(cannot('status-values')).toMatch(/processing is not a status that the daemon knows/)
    expect(cannot('order-status')).toMatch(/done.*never ends/)
    expect(cannot('error-body')).toMatch(/does not find the code/)
    expect(cannot('unknown-customer')).toMatch(/404 without E001/)
    expect(asked.set).toMatchObject({ UNCERTAIN_POLICY: 'hold' })
  })
})

test.each<[SettingsPatch, string, Record<string, string | null>]>([
  [{ expiresInUnit: 'minutes' }, 'token-unit', { 'token-unit': 'minutes' }],
  [{ expiresInForm: 'absent' }, 'token-unit', { 'token-unit': 'none' }],
  [{ expiresInUnit: 'minutes', tokenForm: 'opaque' }, 'token-unit', { 'token-unit': null }],
  [{ unknownIdStatus: 200 }, 'unknown-id,unknown-order', { 'unknown-id': '200', 'unknown-order': '200' }],
  [{ unknownIdStatus: 200, errorShape: 'text' }, 'unknown-id,address', { 'unknown-id': '200', address: 'let in' }],
  [{ mappedFields: 'ignored' }, 'mapped-fields,amount', { 'mapped-fields': 'ignored', amount: 'not read' }],
  [
    { mappedFieldsRequired: true, amountForm: 'number' },
    'mapped-fields,amount',
    { 'mapped-fields': 'in data, required', amount: 'number' },
  ],
  [
    { amountForm: 'text', dateOffsets: 'any' },
    'amount,order-date',
    { amount: 'text', 'order-date': 'milliseconds, any offset' },
  ],
  [{ e002Status: 422 }, 'idempotency', { idempotency: 'e002' }],
  [{ e002Status: 400, errorShape: 'text' }, 'idempotency', { idempotency: 'refused with 400' }],
  [{ ownIds: 'required' }, 'own-id,order', { 'own-id': 'required', order: '201' }],
  [
    { idempotencyDemanded: 'uuid' },
    'idempotency-form,order-unknown-customer',
    { 'idempotency-form': 'bare', 'order-unknown-customer': '400 E001' },
  ],
  [
    { field2LengthMax: 50 },
    'mapped-fields,own-id,field2',
    { 'mapped-fields': 'in data, optional', 'own-id': 'taken', field2: 'below 1,000 characters' },
  ],
  [{ remainingValue: 'double' }, 'rate-failures,rate-limit', { 'rate-failures': null, 'rate-limit': null }],
  [{ rateLimitFailures: false }, 'rate-failures,rate-limit', { 'rate-failures': 'no' }],
  [{ rateLimitPerSecond: 8 }, 'rate-second', { 'rate-second': '8 a second' }],
  [{ orderItems: 'objects' }, 'order-item-shape', { 'order-item-shape': 'objects' }],
  [{ errorShape: 'type' }, 'unknown-customer,error-body', { 'error-body': 'read', 'unknown-customer': '400 E001' }],
  [{ errorShape: 'errors' }, 'unknown-customer,error-body', { 'error-body': 'read', 'unknown-customer': '400 E001' }],
  [
    { errorShape: 'errorCode' },
    'unknown-customer,error-body',
    { 'error-body': 'read', 'unknown-customer': '400 E001' },
  ],
  [{ failureShare: 1, failureCode: 'E003' }, 'status-values', { 'status-values': 'pending, failed' }],
])('discover finds the setting of a service with %j, by %s', async (settings, only, found) => {
  expect(foundIn(await askOf(settings, only))).toMatchObject(found)
})

test('if the first call is refused or the service is down, discover stops before it creates a record', async () => {
  const before = (await service.control('GET', '/transactions?limit=1000')).rows.length
  const { findings } = await askOf({ allowedAddresses: ['10.0.0.1'], addressStatus: 403 })
  expect(findings.address).toMatchObject({
    found: 'refused with 403',
    cannot: expect.stringContaining('every record waits'),
  })
  expect(findings.submission).toMatchObject({ certainty: 'not asked', why: expect.stringContaining('403') })
  expect((await service.control('GET', '/transactions?limit=1000')).rows.length).toBe(before)
  await set({ allowedAddresses: ['127.0.0.1'], down: true })
  const down = await ask(service.sandbox.url, customers)
  expect(down.findings.submission).toMatchObject({
    certainty: 'not asked',
    why: expect.stringContaining('down (E003)'),
  })
})

test('what discover advises to take out of the mapping leaves a file that starts', async () => {
  const { findings } = await askOf({ mappedFields: 'refused' }, 'mapped-fields')
  const [advice = ''] = findings['mapped-fields']?.advice ?? []
  const [, ofBody = '', ofFields = ''] = /take (.*?) out of data .*\((.*?)\) out of `fields`/.exec(advice) ?? []
  const line = (indent: number, names: string) =>
    new RegExp(`^ {${indent}}(${names.split(/, | and /).join('|')}):.*\n`, 'gm')
  const shipped = readFileSync('mappings/data.yaml', 'utf8')
  const followed = shipped.replace(line(4, ofBody), '').replace(line(2, ofFields), '')
  expect(shipped.split('\n').length - followed.split('\n').length).toBe(5)
  expect(readMapping('data.yaml', followed).problems).toEqual([])
})

test('UNCERTAIN_POLICY=resend with a service that ignores keys: discover reports it and advises hold', async () => {
  const { findings } = await askOf({ idempotency: 'ignore' }, 'idempotency', { UNCERTAIN_POLICY: 'resend' })
  expect(findings.idempotency).toMatchObject({ differs: true, set: [{ variable: 'UNCERTAIN_POLICY', value: 'hold' }] })
})

test('discover sends keys in the header that IDEMPOTENCY_HEADER names', async () => {
  const { findings } = await askOf(
    { idempotency: 'replay', idempotencyHeaders: ['X-Request-ID'] },
    'idempotency,idempotency-header',
    {
      IDEMPOTENCY_HEADER: 'X-Request-ID',
    },
  )
  expect(findings['idempotency-header']).toMatchObject({ found: 'X-Request-ID', differs: false })
})
