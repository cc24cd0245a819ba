import { expect, test } from 'vitest'
import { readRecordsQuery, recordsPath } from '../../src/console/records/recordsQuery.ts'
import { concerns } from '../../src/console/records/watchList.ts'
import type { SubmissionFilter } from '../../src/ledger/operator/selectSubmissions.ts'

test.each([
  '/records',
  '/records?state=failed,rejected&code=E003&type=data&key=C%26A&since=2h&until=2026-11-03T10:00Z&newest=on',
  '/records?transaction=7f0c&limit=20&may-have-arrived=on&by-cause=on',
  '/records?containing=M%C3%BCller+%26+Co&cause=0123abcd&after=1763780400123456-42',
  '/records?before=1763780400123456-9007199254740993',
])('%s is read and written alike', (path) => {
  const query = readRecordsQuery(Object.fromEntries(new URL(path, 'http://localhost').searchParams))
  expect(recordsPath(query)).toBe(path)
})

test('a position that is none is the beginning', () => {
  for (const after of ["1'; drop table", '12', '-', 'NaN-1', '99999999999999999-1'])
    expect(readRecordsQuery({ after }).from).toBe(null)
})

const any: SubmissionFilter = {
  ...{ states: ['failed'], code: null, type: null, key: null, sinceMs: null, untilMs: null },
  ...{ mayHaveArrived: null, transactionId: null, cause: null, among: null },
}
const step = {
  ...{ id: '1', from: 'sending' as const, to: 'failed' as const, type: 'data', key: 'C1', code: 'E003' },
  ...{ transactionId: null, mayHaveArrived: false },
}

test('a list is told of the steps into it and out of it alone', () => {
  expect(concerns(any, step)).toBe(true)
  expect(concerns(any, { ...step, from: 'failed', to: 'queued' })).toBe(true)
  expect(concerns(any, { ...step, to: 'rejected' })).toBe(false)
  expect(concerns({ ...any, code: 'e003' }, step)).toBe(true)
  expect(concerns({ ...any, code: 'E001' }, step)).toBe(false)
  expect(concerns({ ...any, code: 'E001' }, { ...step, from: 'failed', to: 'queued', code: null })).toBe(true)
  expect(concerns({ ...any, key: 'C2' }, step)).toBe(false)
  expect(concerns(null, step)).toBe(false)
})
