import { expect, test } from 'vitest'
import type { Problem } from '../../src/model.ts'
import { problemMessages } from '../../src/operations/problemMessages.ts'

const openProblem = (given: Pick<Problem, 'kind' | 'subject' | 'detail'> & Partial<Problem>): Problem => ({
  ...{ sinceMs: 0, seenMs: 0, times: 1, retryMs: null },
  ...given,
})

test('if some instances know a type, the message does not say that no instance has its mapping file', () => {
  const type = openProblem({ kind: 'unknown_type', subject: 'order', detail: 'known by 0a1b2c3d on erp-2' })
  const [message] = problemMessages([type])
  expect(message).toContain('only some instances are known to have a mapping file for it (order: known by 0a1b2c3d')
  expect(message).not.toContain('no instance')
})

test('the message counts all problems of a kind, even if only some were read', () => {
  const row = openProblem({ kind: 'row_missing', subject: '7', detail: 'gone' })
  expect(problemMessages([row], { row_missing: 250 })).toEqual([expect.stringContaining('250 rows left the outbox')])
})

test('changes that were not captured: the message names the role for retry, and what helps if ids are unknown', () => {
  const table = openProblem({ kind: 'change_capture', subject: 'public.sale', detail: 'not all of them known' })
  expect(problemMessages([table])).toEqual([
    expect.stringMatching(
      /as the role that installed change capture, run `select \* from outboxd_capture\.retry\(\)`\. If some ids are unknown \(`has_unknown`\), update the documents that may have changed, then run `select outboxd_capture\.dismiss\('TABLE'\)`\.$/,
    ),
  ])
})

test('a condition that fails, because a column was renamed: the message says to install again', () => {
  const detail = 'the condition of public.sale fails for all rows (42703: column n.state does not exist)'
  const type = openProblem({ kind: 'source_failing', subject: 'order', detail })
  expect(problemMessages([type])).toEqual([expect.stringContaining('or a condition (install change capture again)')])
})

test('from 1,000 rows in conflict, the message says "at least" and that nothing more is captured', () => {
  const row = openProblem({ kind: 'row_conflict', subject: '7', detail: 'differs', retryMs: 600_000 })
  const message = (count: number) => problemMessages([row], { row_conflict: count })
  expect(message(999)).toEqual([expect.stringMatching(/^999 rows of the outbox/)])
  expect(message(1_200)).toEqual([
    expect.stringMatching(
      /^At least 1200 rows of the outbox .* Until then nothing more is captured, unless most of them only wait for their outcome\.$/,
    ),
  ])
})
