import { expect, test } from 'vitest'
import { readPosition, readRecordsQuery, recordsPath } from '../../../src/console/records/recordsQuery.ts'

test.each([
  '/records',
  '/records?state=failed,rejected&code=E003&type=data&key=C%26A&since=2h&until=2026-11-03T10:00Z&newest=on',
  '/records?transaction=7f0c&limit=20&may-have-arrived=on&by-cause=on',
  '/records?containing=M%C3%BCller+%26+Co&cause=0123abcd&after=1763780400123456-9007199254740993',
])('%s is parsed and formatted back to the same address', (path) => {
  const query = readRecordsQuery(Object.fromEntries(new URL(path, 'http://localhost').searchParams))
  expect(recordsPath(query)).toBe(path)
})

test('an invalid position counts as the beginning', () => {
  for (const after of ["1'; drop table", '12', '-', 'NaN-1', '99999999999999999-1'])
    expect(readPosition({ after })).toBe(null)
})
