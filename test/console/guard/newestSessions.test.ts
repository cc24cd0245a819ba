import type { Session } from 'fastify'
import { expect, test } from 'vitest'
import { NewestSessions } from '../../../src/console/guard/newestSessions.ts'

const done = () => {}
const sessionOf = (name: string) => ({ name, cookie: {}, request: { password: 'secret' } }) as unknown as Session

function kept(store: NewestSessions, id: string): unknown {
  let found: unknown
  store.get(id, (_, session) => {
    found = session
  })
  return found
}

test('the oldest of more than a thousand sessions goes, so that a script with the password fills no memory', () => {
  const store = new NewestSessions()
  for (let n = 0; n <= 1_000; n++) store.set(String(n), sessionOf(`operator ${n}`), done)
  expect(kept(store, '0')).toBe(null)
  expect(kept(store, '1')).toMatchObject({ name: 'operator 1' })
  expect(kept(store, '1000')).toMatchObject({ name: 'operator 1000' })
})

test('a session keeps nothing of the request that signed it in, which had the password', () => {
  const store = new NewestSessions()
  store.set('1', sessionOf('ann'), done)
  expect(kept(store, '1')).toEqual({ name: 'ann', cookie: {} })
  store.destroy('1', done)
  expect(kept(store, '1')).toBe(null)
})
