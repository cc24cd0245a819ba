import { PassThrough } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { submissionTable } from '../../../src/commands/terminal/submissionTable.ts'
import type { ListedSubmission } from '../../../src/ledger/operator/selectSubmissions.ts'
import { terminalOf } from '../../../src/plainText.ts'

const submission = {
  id: '019ab000-0000-7000-8000-0000deadbeef',
  outboxId: '7',
  type: 'order',
  key: 'SO-1',
  state: 'rejected',
  code: 'E001',
  sinceMs: 0,
  error: 'long '.repeat(40),
  mayHaveArrived: false,
} as ListedSubmission

test('on a terminal the id is its last eight digits, and the error ends at the edge', () => {
  const stream = Object.assign(new PassThrough(), { isTTY: true, columns: 200, getColorDepth: () => 8 })
  const [, line = ''] = submissionTable([submission], terminalOf(stream)).split('\n')
  expect(line).toMatch(/^deadbeef +7 +order +SO-1/)
  expect(line).toContain('\u001b[35mrejected\u001b[39m')
  expect(stripVTControlCharacters(line)).toHaveLength(200)
})

test('for a program the whole id comes first, without colours', () => {
  const [head, line = ''] = submissionTable([submission]).split('\n')
  expect(head).toMatch(/^ID +OUTBOX/)
  expect(line).toMatch(/^019ab000-0000-7000-8000-0000deadbeef +7 +order +SO-1 +rejected +E001/)
})
