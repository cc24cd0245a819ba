import { describe, expect, test } from 'vitest'
import { findEachSubmissionByReference, searchRecords } from '../../src/operations/references.ts'
import type { Database } from '../../src/postgres/database.ts'
import { failedE003, openFixture } from '../commands/fixture.ts'

const idOf = (i: number) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`

test('one query finds all records that are named by whole ids, and a second one a record named by its row', async () => {
  await using fixture = await openFixture()
  const ids = await fixture.ledger.capture(Array.from({ length: 500 }, () => ({ error: 'x' })))
  const named = await fixture.ledger.capture([{ outboxId: '777777', error: 'x' }])
  let questions = 0
  const counted: Database = {
    query(text, values) {
      questions += 1
      return fixture.ledger.pool.query(text, values)
    },
  }
  const found = await findEachSubmissionByReference(counted, [...ids.map((id) => id.toUpperCase()), 'outbox:777777'])
  if (found.kind !== 'found') throw new Error(found.problems.join())
  expect(found.submissions.map(({ id }) => id).toSorted()).toEqual([...ids, ...named].toSorted())
  expect(questions).toBe(2)
  expect(await findEachSubmissionByReference(counted, [ids[0] ?? '', idOf(9)])).toEqual({
    kind: 'missing',
    problems: [`there is no record ${idOf(9)}`],
  })
})

describe('searchRecords', () => {
  test('finds a completed record by its row, key, transaction, ids and idempotency key', async () => {
    await using fixture = await openFixture()
    await fixture.reset()
    const { pool } = fixture.ledger
    const id = await fixture.end({ state: 'completed', transactionId: 'tx-7' }, { outboxId: '4711', key: 'PO-1' })
    const { idempotency_key: idempotencyKey } = await fixture.ledger.row(id)
    const words = [id, id.slice(0, 8), id.slice(-8), '4711', 'outbox:4711', 'PO-1', 'key:PO-1', 'tx-7', ' tx-7 ']
    for (const word of [...words, String(idempotencyKey)])
      expect(
        (await searchRecords(pool, word, 5))?.map((found) => found.id),
        word,
      ).toEqual([id])
    expect(await searchRecords(pool, 'PO-2', 5)).toEqual([])
    expect(await searchRecords(pool, 'outbox:', 5)).toBeNull()
  })

  test('finds each record that a word may mean, and of a whole id only its record', async () => {
    await using fixture = await openFixture()
    await fixture.reset()
    const { pool } = fixture.ledger
    const byRow = await fixture.end(failedE003, { outboxId: '4711' })
    const byKey = await fixture.end({ state: 'completed' }, { outboxId: '1', key: '4711' })
    const byTransaction = await fixture.end(
      { state: 'completed', transactionId: '4711' },
      { outboxId: '2', key: byRow },
    )
    expect((await searchRecords(pool, '4711', 5))?.map(({ id }) => id)).toEqual([byTransaction, byRow, byKey])
    expect(await searchRecords(pool, '4711', 2)).toHaveLength(2)
    expect((await searchRecords(pool, byRow.toUpperCase(), 5))?.map(({ id }) => id)).toEqual([byRow])
  })
})
