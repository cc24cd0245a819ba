import { expect, test } from 'vitest'
import type { Problem } from '../../src/model.ts'
import { problemMessages } from '../../src/operations/problemMessages.ts'

test('rows of a type wait if some instances know the type: the message does not say that no instance does', () => {
  const type: Problem = {
    kind: 'unknown_type',
    subject: 'order',
    detail: 'known by 0a1b2c3d on erp-2',
    sinceMs: 0,
    seenMs: 0,
    times: 1,
    retryMs: null,
  }
  const [message] = problemMessages([type])
  expect(message).toContain('only some instances are known to have a mapping file for it (order: known by 0a1b2c3d')
  expect(message).not.toContain('no instance')
})
