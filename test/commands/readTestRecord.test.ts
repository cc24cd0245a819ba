import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readTestRecord } from '../../src/commands/readTestRecord.ts'
import { testContext } from '../support/context.ts'
import { mappingFiles } from './fixture.ts'

test.each([
  ['a byte order mark', '\uFEFF{"customerId":"C9","data":{}}', /begins with a byte order mark \(U\+FEFF\)/],
  ['bytes that are not UTF-8', Buffer.from('{"customerId":"ü","data":{}}', 'latin1'), /it is not UTF-8 text$/],
])('--record refuses a file with %s', (_, content, problem) => {
  const file = join(mappingFiles({}), 'record.json')
  writeFileSync(file, content)
  expect(readTestRecord(testContext({}), file, undefined)).toEqual({
    kind: 'invalid',
    problem: expect.stringMatching(problem),
  })
})
