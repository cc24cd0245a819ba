import { expect, test } from 'vitest'
import { findEachSubmissionByReference } from '../../src/operations/references.ts'
import type { Database } from '../../src/postgres/database.ts'
import { openFixture } from '../commands/fixture.ts'

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
