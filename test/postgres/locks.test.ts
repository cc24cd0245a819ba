import fc from 'fast-check'
import { expect, test } from 'vitest'
import { toStatementKind } from '../../src/postgres/locks.ts'

test.each([
  ['LOCK TABLE outbox', 'lock table'],
  ['lock outbox in exclusive mode', 'lock'],
  ['  -- by the form\n/* order 7 */ Alter\n  Table outbox add c text', 'alter table'],
  ['update customer set name = $1', 'update'],
  ['selection', 'another statement'],
  ["notify x, 'secret'", 'another statement'],
  ['', null],
  ['<insufficient privilege>', null],
  [null, null],
])('the statement %j is called %s', (query, kind) => {
  expect(toStatementKind(query)).toBe(kind)
})

test('the name of a statement’s kind has only words of our own', () => {
  fc.assert(
    fc.property(fc.constantFrom('', 'select ', 'update ', '/*'), fc.string({ maxLength: 200 }), (verb, text) => {
      const kind = toStatementKind(`${verb}${text}`)
      expect(kind === null || /^[a-z ]+$/.test(kind)).toBe(true)
      expect(kind ?? '').not.toContain('secret')
    }),
  )
})
