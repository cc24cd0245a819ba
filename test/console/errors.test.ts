import { expect, test } from 'vitest'
import { explainConsoleError, RequestRefused } from '../../src/console/errors.ts'
import { DatabaseUnusable } from '../../src/postgres/database.ts'

const coded = (code: string, message: string) => Object.assign(new Error(message), { code })
const unusable = (cause: unknown) => new DatabaseUnusable('postgres://a:secret@db.example/erp', 'no', cause)

test.each<[string, Error, Partial<ReturnType<typeof explainConsoleError>>]>([
  [
    'a database that is away',
    coded('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:5432'),
    { status: 503, isPassing: true },
  ],
  ['a database that shuts down', coded('57P01', 'terminating connection'), { status: 503, isPassing: true }],
  ['the outbox’s database that is away', unusable(coded('08006', 'lost')), { status: 503, isPassing: true }],
  ['a ledger of another version', coded('42703', 'column "x" does not exist'), { status: 503, isPassing: true }],
  [
    'a statement timeout, which is not retried by itself',
    coded('57014', 'canceling statement due to statement timeout'),
    { status: 503, isPassing: false },
  ],
  [
    'a lock on the ledger’s tables',
    coded('55P03', 'canceling statement due to lock timeout'),
    { status: 503, isPassing: true },
  ],
  [
    'a lock on the outbox',
    unusable(coded('55P03', 'canceling statement due to lock timeout')),
    { status: 503, isPassing: false },
  ],
  ['a refused request', new RequestRefused(403, 'no'), { status: 403, isPassing: false, words: 'no' }],
  [
    'an error in our code',
    new TypeError('x is undefined'),
    { status: 500, isPassing: false, words: 'X is undefined.' },
  ],
])('the console explains %s', (_, error, trouble) => {
  expect(explainConsoleError(error)).toMatchObject(trouble)
  expect(explainConsoleError(error).words).not.toContain('secret')
})
