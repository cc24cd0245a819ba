import { expect, test } from 'vitest'
import {
  hashPassword,
  isPasswordCorrect,
  type PasswordHash,
  readPasswordHash,
} from '../../../src/console/guard/passwordHash.ts'

test('a hash accepts its password in any Unicode form, and no other password', async () => {
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
    'of a different algorithm',
    '$argon2i$v=19$m=65536,t=3,p=1$c29tZXNhbHRzb21lc2FsdA$NrVTxhYAUZm1AP0Rw/0uBUuXqAH9Y6Nlh6U5GJdhp8U',
  ],
  [
    'two lines',
    '$argon2id$v=19$m=47104,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$NrVTxhYAUZm1AP0Rw/0uBUuXqAH9Y6Nlh6U5GJdhp8U\n$argon2id$',
  ],
])('a hash that is %s is refused', (_, line) => {
  expect(readPasswordHash(line)).toBeNull()
})
