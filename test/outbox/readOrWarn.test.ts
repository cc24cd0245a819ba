import { expect, test } from 'vitest'
import { readOrWarn } from '../../src/outbox/propose/proposeFilesForTable.ts'

const failing = (code: string) => () => Promise.reject(Object.assign(new Error('canceling statement'), { code }))

test('what takes too long to look at, as a view may, is not known; a lock or a lost connection ends the look', async () => {
  const warnings: string[] = []
  expect(await readOrWarn('what "a" holds', warnings, failing('57014'))).toBeUndefined()
  expect(warnings).toEqual(['what "a" holds could not be read: canceling statement'])
  await expect(readOrWarn('what "a" holds', warnings, failing('55P03'))).rejects.toThrow()
  await expect(readOrWarn('what "a" holds', warnings, failing('57P01'))).rejects.toThrow()
})
