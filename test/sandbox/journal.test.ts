import pg from 'pg'
import { expect, test } from 'vitest'
import { type Entry, Journal } from '../../src/sandbox/storage/journal.ts'

function entry(path: string): Entry {
  const row = { arrivedUs: 0, endpoint: 'other' as const, method: 'GET', path, client: null, address: '', body: '' }
  return { row: { ...row, idempotencyKey: null, status: 404, counted: false, faultId: null }, effect: undefined }
}

function refusal(code: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError('refused', 0, 'error'), { code })
}

/** A journal whose first batch waits, so that all that is written meanwhile becomes the second. */
function gathering(write: (paths: string[]) => void) {
  const first = Promise.withResolvers<void>()
  const batches: string[][] = []
  const journal = new Journal(async (entries) => {
    const paths = entries.map(({ row }) => row.path)
    batches.push(paths)
    if (batches.length === 1) await first.promise
    write(paths)
  })
  return { journal, batches, release: () => first.resolve() }
}

test('what arrives during a write is written together in the next', async () => {
  const { journal, batches, release } = gathering(() => {})
  const all = ['a', 'b', 'c'].map((path) => journal.write(entry(path)))
  release()
  await Promise.all(all)
  expect(batches).toEqual([['a'], ['b', 'c']])
})

test('an entry that Postgres refuses fails alone, and the others in its batch are written', async () => {
  const { journal, release } = gathering((paths) => {
    if (paths.includes('bad')) throw refusal('22003')
  })
  const all = ['a', 'b', 'bad', 'c'].map((path) => journal.write(entry(path)))
  release()
  expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'fulfilled',
  ])
})

test('a batch that may have been written is not written again', async () => {
  const { journal, batches, release } = gathering((paths) => {
    if (paths.length > 1) throw new Error('connection lost')
  })
  const all = ['a', 'b', 'c'].map((path) => journal.write(entry(path)))
  release()
  expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
  expect(batches).toEqual([['a'], ['b', 'c']])
})
