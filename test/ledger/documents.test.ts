import { describe, expect, test } from 'vitest'
import {
  computeRequestDigest,
  decideVersion,
  decideVersions,
  documentIdOf,
  type KnownDocument,
} from '../../src/ledger/documents.ts'
import type { CapturedRecord } from '../../src/model/outbox.ts'
import { record } from '../support/record.ts'

const unsent = (
  outboxId: string,
  state: 'queued' | 'failed' | 'rejected',
  digest: string,
  changedAfterSent = false,
) => ({
  ...{ id: `s${outboxId}`, outboxId, state, digest, changedAfterSent },
})
const sent = { outboxId: '7', digest: 'a', wasGivenUp: false }
const again = 'changed after it was sent as outbox:7'

/** The document as the ledger knows it, the new version, and what becomes of it with `once` and with `each`. */
const table: [
  name: string,
  known: Partial<KnownDocument>,
  version: { digest: string; noRecord?: string },
  once: [kind: string, why: string | null],
  each: [kind: string, why: string | null],
  superseded: string[],
][] = [
  ['the first version', {}, { digest: 'b' }, ['send', null], ['send', null], []],
  ['it does not meet the condition', {}, { digest: 'n', noRecord: 'draft' }, ['drop', 'draft'], ['drop', 'draft'], []],
  [
    'an earlier one waits',
    { unsent: [unsent('8', 'queued', 'b')] },
    { digest: 'c' },
    ['send', null],
    ['send', null],
    ['8'],
  ],
  [
    'an equal one waits',
    { unsent: [unsent('8', 'queued', 'b')] },
    { digest: 'b' },
    ['drop', 'unchanged since outbox:8'],
    ['drop', 'unchanged since outbox:8'],
    [],
  ],
  [
    'an equal one was rejected',
    { unsent: [unsent('8', 'rejected', 'b')] },
    { digest: 'b' },
    ['send', null],
    ['send', null],
    ['8'],
  ],
  [
    'an equal one failed',
    { unsent: [unsent('8', 'failed', 'b')] },
    { digest: 'b' },
    ['send', null],
    ['send', null],
    ['8'],
  ],
  [
    'it was deleted while an earlier one waited',
    { unsent: [unsent('8', 'queued', 'b')] },
    { digest: 'n', noRecord: 'deleted' },
    ['drop', 'deleted'],
    ['drop', 'deleted'],
    ['8'],
  ],
  ['another was sent', { sent }, { digest: 'b' }, ['list', again], ['send', null], []],
  [
    'an equal one was sent',
    { sent },
    { digest: 'a' },
    ['drop', 'unchanged since outbox:7'],
    ['drop', 'unchanged since outbox:7'],
    [],
  ],
  [
    'an equal one was given up, while a later one was listed',
    { sent: { ...sent, wasGivenUp: true }, unsent: [unsent('8', 'rejected', 'b', true)] },
    { digest: 'a' },
    ['list', again],
    ['send', null],
    ['8'],
  ],
  [
    'an equal one was given up',
    { sent: { ...sent, wasGivenUp: true } },
    { digest: 'a' },
    ['drop', 'unchanged since outbox:7'],
    ['drop', 'unchanged since outbox:7'],
    [],
  ],
  [
    'it was sent, and nobody knows with which content',
    { sent: { ...sent, digest: null } },
    { digest: 'a' },
    ['list', again],
    ['send', null],
    [],
  ],
  [
    'it was sent and then deleted',
    { sent },
    { digest: 'n', noRecord: 'deleted' },
    ['list', `${again}: deleted`],
    ['list', `${again}: deleted`],
    [],
  ],
  [
    'it changed again after it was sent',
    { sent, unsent: [unsent('8', 'rejected', 'b', true)] },
    { digest: 'c' },
    ['list', again],
    ['send', null],
    ['8'],
  ],
  [
    'the same change after it was sent',
    { sent, unsent: [unsent('8', 'rejected', 'b', true)] },
    { digest: 'b' },
    ['drop', 'unchanged since outbox:8'],
    ['drop', 'unchanged since outbox:8'],
    [],
  ],
  [
    'it is again as it was sent',
    { sent, unsent: [unsent('8', 'rejected', 'b', true)] },
    { digest: 'a' },
    ['drop', 'unchanged since outbox:7'],
    ['drop', 'unchanged since outbox:7'],
    ['8'],
  ],
]

describe('decideVersion', () => {
  test.each(table)('%s', (_, known, { digest, noRecord = null }, once, each, superseded) => {
    for (const [changes, [kind, why]] of Object.entries({ once, each })) {
      const whole = { sent: null, unsent: [], ...known }
      const decision = decideVersion(whole, { digest, noRecord }, changes as 'once' | 'each')
      expect(decision).toMatchObject({ kind, why })
      expect(decision.supersedes.map(({ outboxId }) => outboxId)).toEqual(superseded)
    }
  })
})

describe('decideVersions', () => {
  const row = (outboxId: string, given: Partial<CapturedRecord> = {}) =>
    record({ outboxId, type: 'order', document: '5', body: '{}', ...given })
  const documents = new Map([[documentIdOf({ type: 'order', document: '5' }) ?? '', { sent: null, unsent: [] }]])

  test('of the rows of a document in a batch, the first is its version', () => {
    const rows = [row('1'), row('2'), row('3', { document: null })]
    const { records } = decideVersions(rows, { documents, knownRows: new Set() }, 'once')
    expect(records.map(({ document, discarded }) => [document, discarded ?? null])).toEqual([
      ['5', null],
      [null, 'unchanged since outbox:1'],
      [null, null],
    ])
  })

  test('a row that the ledger has is returned as it is', () => {
    const rows = [row('1'), row('2')]
    const { records, superseded } = decideVersions(rows, { documents, knownRows: new Set(['1']) }, 'once')
    expect(records[0]).toBe(rows[0])
    expect(records[1]).toMatchObject({ document: '5', digest: expect.any(String) })
    expect(superseded).toEqual([])
  })

  test('a version that does not map is compared by its content and its error', () => {
    const digest = (payload: string, error: string) =>
      decideVersions([row('1', { body: null, payload, error })], { documents, knownRows: new Set() }, 'once').records[0]
        ?.digest
    expect(digest('{}', 'x')).toBe(digest('{}', 'x'))
    expect(new Set([digest('{}', 'x'), digest('{"a":1}', 'x'), digest('{}', 'y')]).size).toBe(3)
  })
})

test('the digest of a request differs by endpoint and by each digit, not by submission', () => {
  const [one, two] = ['019aaaaa-0000-7000-8000-000000000001', '019aaaaa-0000-7000-8000-000000000002']
  const digest = (id: string, resource: 'data' | 'orders', total: string) =>
    computeRequestDigest({ id, resource, body: `{"ref":"${id}","total":${total}}` })
  expect(digest(one, 'orders', '1.10')).toBe(digest(two, 'orders', '1.10'))
  expect(digest(one, 'orders', '1.10')).not.toBe(digest(one, 'data', '1.10'))
  expect(digest(one, 'orders', '1.10')).not.toBe(digest(one, 'orders', '1.1'))
  expect(computeRequestDigest({ id: one, resource: 'data', body: null })).toBeNull()
})
