import { expect, test } from 'vitest'
import {
  hashPassword,
  isPasswordCorrect,
  type PasswordHash,
  readPasswordHash,
} from '../../../src/console/guard/passwordHash.ts'

test('a password is known again by its line, and no other is', async () => {
  const line = await hashPassword('Käse und Brot am Abend')
  expect(line).toMatch(/^\$argon2id\$v=19\$m=47104,t=1,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  const hash = readPasswordHash(`${line}\n`) as PasswordHash
  expect(await isPasswordCorrect('Käse und Brot am Abend'.normalize('NFD'), hash)).toBe(true)
  for (const other of ['', 'käse und brot am abend', 'Käse und Brot am Abend '])
    expect(await isPasswordCorrect(other, hash)).toBe(false)
  expect(await hashPassword('Käse und Brot am Abend')).not.toBe(line)
})

test.each([
  ['weak', '$argon2id$v=19$m=1024,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$NrVTxhYAUZm1AP0Rw/0uBUuXqAH9Y6Nlh6U5GJdhp8U'],
  [
    'of another kind',
    '$argon2i$v=19$m=65536,t=3,p=1$c29tZXNhbHRzb21lc2FsdA$NrVTxhYAUZm1AP0Rw/0uBUuXqAH9Y6Nlh6U5GJdhp8U',
  ],
  [
    'two',
    '$argon2id$v=19$m=47104,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$NrVTxhYAUZm1AP0Rw/0uBUuXqAH9Y6Nlh6U5GJdhp8U\n$argon2id$',
  ],
])('a line that is %s is none', (_, line) => {
  expect(readPasswordHash(line)).toBeNull()
})
