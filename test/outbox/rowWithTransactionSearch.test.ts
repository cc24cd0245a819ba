import { expect, test } from 'vitest'
import { createSearchForRowNamingTransaction } from '../../src/outbox/rowsWithTransactionId.ts'

type TableSlice = Awaited<ReturnType<Parameters<typeof createSearchForRowNamingTransaction>[0]>>

const row = (outboxId: string, transactionId: string | null) => ({
  ...{ outboxId, transactionId },
  ...{ created: null, createdAt: null, stateText: 'queued' },
})

const none = { kind: 'none' }
const unknown = { kind: 'unknown' }

/** A table in slices of one row, each of which takes 600 ms to read. */
function table(rows: TableSlice['unknown']) {
  let nowMs = 0
  const asked: (string | null)[] = []
  const readRowsUnderWay = async (after: string | null): Promise<TableSlice> => {
    asked.push(after)
    nowMs += 600
    const index = rows.findIndex(({ outboxId }) => outboxId === after) + 1
    const isLast = index >= rows.length - 1
    return { unknown: rows.slice(index, index + 1), upTo: isLast ? null : `${index + 1}` }
  }
  const wait = (ms: number) => {
    nowMs += ms
  }
  return { ...createSearchForRowNamingTransaction(readRowsUnderWay, () => nowMs), asked, wait }
}

test('a row that names a transaction is found after others, in several calls of about a second each', async () => {
  const { find, asked } = table([row('1', null), row('2', null), row('3', 'tx-3')])
  expect(await find()).toEqual(unknown)
  expect(await find()).toEqual({ kind: 'named', outboxId: '3' })
  expect(asked).toEqual([null, '1', '2'])
})

test('the result "none" is kept for ten times as long as the search took, then a later row is found', async () => {
  const rows = [row('1', null)]
  const { find, wait } = table(rows)
  expect(await find()).toEqual(none)
  rows.push(row('2', 'tx-2'))
  wait(5_999)
  expect(await find()).toEqual(none)
  wait(1)
  expect(await find()).toEqual({ kind: 'named', outboxId: '2' })
})

test('findNow searches again even while a result is kept, and find then returns the row that it found', async () => {
  const rows = [row('1', null), row('2', null), row('3', null)]
  const { find, findNow, asked } = table(rows)
  const named = { kind: 'named', outboxId: '1' }
  expect([await find(), await find(), await findNow(), await findNow()]).toEqual([unknown, none, unknown, none])
  rows[0] = row('1', 'tx-1')
  expect([await find(), await findNow(), await find()]).toEqual([none, named, named])
  expect(asked).toEqual([null, '1', '2', null, '1', '2', null, null])
})

test('rows under way without a transaction are not found', async () => {
  expect(await table([row('1', null)]).find()).toEqual(none)
})

test('after a slice that takes too long the next search starts over, and its result is not kept longer', async () => {
  let nowMs = 0
  const asked: (string | null)[] = []
  const readRowsUnderWay = async (after: string | null): Promise<TableSlice> => {
    asked.push(after)
    nowMs += 100
    if (after !== null) throw Object.assign(new Error('canceled'), { code: '57014' })
    return { unknown: [], upTo: '1' }
  }
  const { find } = createSearchForRowNamingTransaction(readRowsUnderWay, () => nowMs)
  for (const waitMs of [1_999, 2_000, 2_000]) {
    expect(await find()).toEqual(none)
    nowMs += waitMs
  }
  expect(asked).toEqual([null, '1', null, '1'])
})

test('a timeout while reading a slice counts as none, and any other error is thrown', async () => {
  const failing = (code: string) =>
    createSearchForRowNamingTransaction(
      () => Promise.reject(Object.assign(new Error(code), { code })),
      () => 0,
    ).find
  expect(await failing('57014')()).toEqual(none)
  await expect(failing('42501')()).rejects.toThrow('42501')
})
