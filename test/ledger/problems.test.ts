import { expect, test } from 'vitest'
import { clearProblems, raiseProblems, readProblems, replaceProblems } from '../../src/ledger/problems.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { openLedgerForFile } from '../support/ledger.ts'

const ledger = openLedgerForFile()

const skipped = (subject: string, detail = 'why') => ({
  kind: 'row_skipped' as const,
  subject,
  detail,
  retryInMs: null,
})
const standing = async () => (await readProblems(ledger.pool, 100)).map(({ subject }) => subject)

test('a problem that is seen again keeps the time of its beginning, and is counted', async () => {
  await raiseProblems(ledger.pool, [skipped('1', 'first'), skipped('1', 'twice in one batch')])
  const [before] = await readProblems(ledger.pool, 100)
  await raiseProblems(ledger.pool, [{ ...skipped('1', 'second'), retryInMs: 60_000 }])
  const [after] = await readProblems(ledger.pool, 100)
  expect(after).toMatchObject({ kind: 'row_skipped', subject: '1', detail: 'second', times: 2 })
  expect(after?.sinceMs).toBe(before?.sinceMs)
  expect(after?.retryMs).toBeGreaterThan(Number(after?.seenMs))
})

test('many problems of one kind hide no problem of another kind', async () => {
  await raiseProblems(ledger.pool, [skipped('1'), skipped('2'), skipped('3')])
  await raiseProblems(ledger.pool, [{ ...skipped(''), kind: 'clock_off' }])
  const read = await readProblems(ledger.pool, 2)
  expect(read.map(({ kind }) => kind)).toEqual(['row_skipped', 'row_skipped', 'clock_off'])
})

test('clearing removes the named problems, or all of a kind, and keeps the others', async () => {
  await raiseProblems(ledger.pool, [skipped('1'), skipped('2'), { ...skipped(''), kind: 'clock_off' }])
  await clearProblems(ledger.pool, 'row_skipped', ['1'])
  expect((await standing()).sort()).toEqual(['', '2'])
  await clearProblems(ledger.pool, 'row_skipped', null)
  expect(await standing()).toEqual([''])
})

test('replacing the problems of a kind leaves exactly the given ones', async () => {
  await raiseProblems(ledger.pool, [skipped('1'), skipped('2')])
  await replaceProblems(ledger.pool, 'row_skipped', [skipped('2'), skipped('3')])
  expect((await standing()).sort()).toEqual(['2', '3'])
})

test('the snapshot counts problems by kind', async () => {
  await raiseProblems(ledger.pool, [skipped('1'), skipped('2'), { ...skipped(''), kind: 'clock_off' }])
  expect((await readLedgerSnapshot(ledger.pool)).problems).toEqual({ row_skipped: 2, clock_off: 1 })
})

test('a problem is stored and cleared whatever the length and characters of its subject', async () => {
  const subject = `${'ä'.repeat(499)}\ud83d\0${'x'.repeat(10_000)}`
  await raiseProblems(ledger.pool, [skipped(subject, 'half a pair \ud83d and NUL \0')])
  expect(await standing()).toHaveLength(1)
  await clearProblems(ledger.pool, 'row_skipped', [subject])
  expect(await standing()).toEqual([])
})
