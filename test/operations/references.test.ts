import { expect, test } from 'vitest'
import type { SubmissionReference } from '../../src/ledger/operator/findSubmissions.ts'
import type { ListedSubmission } from '../../src/ledger/operator/selectSubmissions.ts'
import { findAll } from '../../src/operations/references.ts'

const idOf = (i: number) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`

test('whole ids are found by one question, however many; a name of another kind by its own', async () => {
  const asked: SubmissionReference[] = []
  const store = {
    async find(reference: SubmissionReference) {
      asked.push(reference)
      const ids = reference.kind === 'ids' ? reference.ids : reference.kind === 'outbox' ? [idOf(7)] : []
      return ids.filter((id) => id !== idOf(9)).map((id) => ({ id }) as ListedSubmission)
    },
  }
  const names = Array.from({ length: 5_000 }, (_, i) => idOf(i + 10).toUpperCase())
  const found = await findAll(store, [...names, 'outbox:7'])
  expect(found).toMatchObject({ kind: 'found', submissions: { length: 5_001 } })
  expect(asked.map(({ kind }) => kind)).toEqual(['ids', 'outbox'])
  expect(await findAll(store, [idOf(1), idOf(9)])).toEqual({
    kind: 'missing',
    problems: [`there is no submission ${idOf(9)}`],
  })
})
