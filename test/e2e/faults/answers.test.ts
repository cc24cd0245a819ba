import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { mappingsDir } from '../../support/daemon.ts'
import { openForFile } from '../../support/openForFile.ts'
import { type Outcome, setup } from './harness.ts'

/** Every answer that a service can give to a POST, each for one record, all concurrently through one daemon. */

interface Row {
  says: string
  fault: Record<string, unknown>
  field2?: string
  customerId?: string
  /** Uses a mapping with track: false. */
  isUntracked?: true
  becomes: Partial<Outcome>
}

const rows: Row[] = [
  {
    says: '500 three times: sent again under its key, completed',
    fault: { kind: 'answer', status: 500, times: 3 },
    becomes: { state: 'completed', posts: [500, 500, 500, 200], effects: 1 },
  },
  {
    says: '500 for ever: failed after three retries',
    fault: { kind: 'answer', status: 500 },
    becomes: { state: 'failed', posts: [500, 500, 500, 500], effects: 0 },
  },
  {
    says: '500 although it was stored, then E002: uncertain',
    fault: { kind: 'answer', status: 500, when: 'after', times: 1 },
    becomes: { state: 'uncertain', code: 'E002', posts: [500, 409], effects: 1 },
  },
  {
    says: 'E002 to a first attempt: completed under a new key',
    fault: { kind: 'answer', status: 409, code: 'E002', times: 1 },
    becomes: { state: 'completed', posts: [409, 200], effects: 1 },
  },
  {
    says: 'E002 for ever: failed after three new keys',
    fault: { kind: 'answer', status: 409, code: 'E002' },
    becomes: { state: 'failed', code: 'E002', mayHaveArrived: false, posts: [409, 409, 409, 409], effects: 0 },
  },
  {
    says: '502: uncertain',
    fault: { kind: 'answer', status: 502 },
    becomes: { state: 'uncertain', posts: [502], effects: 0 },
  },
  {
    says: '504 although it was stored: uncertain',
    fault: { kind: 'answer', status: 504, when: 'after' },
    becomes: { state: 'uncertain', posts: [504], effects: 1 },
  },
  {
    says: '200 with garbage: uncertain',
    fault: { kind: 'garbage' },
    becomes: { state: 'uncertain', posts: [200], effects: 1 },
  },
  {
    says: '200 without an id: uncertain',
    fault: { kind: 'missing_id' },
    becomes: { state: 'uncertain', posts: [200], effects: 1 },
  },
  {
    says: '200 with 50 MB in gzip, not unpacked: uncertain',
    fault: { kind: 'gzip', bytes: 50_000_000 },
    becomes: { state: 'uncertain', posts: [200], effects: 1 },
  },
  {
    says: '200 of 10 MB: uncertain',
    fault: { kind: 'oversized' },
    becomes: { state: 'uncertain', posts: [200], effects: 1 },
  },
  {
    says: 'the connection closed before it was stored: uncertain',
    fault: { kind: 'drop' },
    becomes: { state: 'uncertain', posts: [null], effects: 0 },
  },
  {
    says: 'the connection closed after it was stored: uncertain',
    fault: { kind: 'drop', when: 'after' },
    becomes: { state: 'uncertain', posts: [null], effects: 1 },
  },
  {
    says: '303 whose Location ends in its id: the id is asked for, completed',
    fault: { kind: 'redirect', status: 303, location: '/status/{id}', when: 'after' },
    becomes: { state: 'completed', posts: [303], effects: 1 },
  },
  {
    says: '303 to another place although it was stored: uncertain, one POST',
    fault: { kind: 'redirect', status: 303, when: 'after' },
    becomes: { state: 'uncertain', posts: [303], effects: 1 },
  },
  {
    says: '300: uncertain, one POST',
    fault: { kind: 'redirect', status: 300 },
    becomes: { state: 'uncertain', posts: [300], effects: 0 },
  },
  {
    says: '304: uncertain, one POST',
    fault: { kind: 'answer', status: 304, body: '' },
    becomes: { state: 'uncertain', posts: [304], effects: 0 },
  },
  {
    says: '200 with an id that says rejected: failed',
    fault: { kind: 'unknown_status', value: 'rejected' },
    becomes: { state: 'failed', posts: [200], effects: 1 },
  },
  ...[
    { transactionId: 'u-1', status: 'failed' },
    { transactionId: 'u-2', status: 'Rejected', errorCode: 'E001' },
  ].map(
    (body): Row => ({
      says: `200 that says failed, \`track: false\` (${body.status}): failed`,
      fault: { kind: 'answer', status: 200, body },
      isUntracked: true,
      becomes: { state: 'failed', code: body.errorCode ?? null, posts: [200] },
    }),
  ),
  {
    says: '200 with an id and E003, `track: false`: uncertain',
    fault: { kind: 'answer', status: 200, body: { transactionId: 'u-3', errorCode: 'E003' } },
    isUntracked: true,
    becomes: { state: 'uncertain', code: 'E003', posts: [200] },
  },
  {
    says: 'accepted, `track: false`: completed',
    fault: { kind: 'delay', delayMs: 1 },
    isUntracked: true,
    becomes: { state: 'completed', posts: [200], effects: 1 },
  },
  {
    says: '200 with the status twice: uncertain',
    fault: { kind: 'garbage', body: '{"transactionId":"twice","status":"failed","status":"accepted"}' },
    becomes: { state: 'uncertain', posts: [200], effects: 1 },
  },
  {
    says: '400: rejected',
    fault: { kind: 'answer', status: 400 },
    becomes: { state: 'rejected', posts: [400], effects: 0 },
  },
  {
    says: '400 whose text mentions "E003-17": rejected, no pause',
    fault: { kind: 'answer', status: 400, body: 'article E003-17 is not for sale', contentType: 'text/plain' },
    becomes: { state: 'rejected', code: null, posts: [400], effects: 0 },
  },
  {
    says: '422: rejected',
    fault: { kind: 'answer', status: 422, body: { message: 'no' } },
    becomes: { state: 'rejected', posts: [422], effects: 0 },
  },
  {
    says: '409 without a code after an attempt in doubt: uncertain',
    fault: { kind: 'answer', status: 500, when: 'after', times: 1 },
    field2: 'then-409-',
    becomes: { state: 'uncertain', posts: [500, 409], effects: 1 },
  },
  {
    says: 'E001: rejected',
    fault: { kind: 'delay', delayMs: 1 },
    customerId: 'UNKNOWN1',
    becomes: { state: 'rejected', code: 'E001', posts: [400], effects: 0 },
  },
  {
    says: 'accepted, then failed: failed with its code',
    fault: { kind: 'delay', delayMs: 1 },
    field2: 'fail:E001 ',
    becomes: { state: 'failed', code: 'E001', mayHaveArrived: false, posts: [200], effects: 1 },
  },
  {
    says: 'accepted, then failed with E002: new keys, three times at most',
    fault: { kind: 'delay', delayMs: 1 },
    field2: 'fail:E002 ',
    becomes: { state: 'failed', code: 'E002', mayHaveArrived: true, posts: [200, 200, 200, 200], effects: 4 },
  },
  {
    says: 'accepted, then failed with E003: new keys, after a pause',
    fault: { kind: 'delay', delayMs: 1 },
    field2: 'fail:E003 ',
    becomes: { state: 'failed', code: 'E003', mayHaveArrived: true, posts: [200, 200, 200, 200], effects: 4 },
  },
]

const harness = openForFile(() => setup())
const folder = mkdtempSync(join(tmpdir(), 'outboxd-'))
beforeAll(async () => {
  await Promise.all(
    rows.map(async ({ fault, field2 = '', customerId = 'C1', isUntracked }, i) => {
      const marker = `answer-${i}-`
      await harness.fault({ ...fault, endpoint: 'submit', bodyContains: marker })
      if (field2 === 'then-409-')
        await harness.fault({ kind: 'answer', status: 409, body: 'conflict', endpoint: 'submit', bodyContains: marker })
      await harness.insert(marker, { field2, customerId, type: isUntracked ? 'untracked' : 'data' })
    }),
  )
  const data = readFileSync(join(mappingsDir, 'data.yaml'), 'utf8')
  writeFileSync(join(folder, 'data.yaml'), data)
  writeFileSync(join(folder, 'untracked.yaml'), `${data.replace('type: data ', 'type: untracked ')}\ntrack: false\n`)
  await harness.start({ MAX_IN_FLIGHT: '50', MAPPINGS_DIR: folder })
})

describe('an answer to a POST', () => {
  test.concurrent.each(rows.map((row, i) => ({ ...row, marker: `answer-${i}-` })))('$says', async ({
    marker,
    becomes,
  }) => {
    const outcome = await harness.becomes(marker, 'completed', 'failed', 'rejected', 'uncertain')
    expect(outcome).toMatchObject(becomes)
    const keys = new Set(outcome.keys).size
    const renewed = outcome.causes.filter((cause) => /E002|E003/.test(cause)).length
    if (outcome.state === 'completed') expect(keys).toBe(1 + renewed)
  })
})
