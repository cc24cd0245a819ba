import { expect, test } from 'vitest'
import { createChangeStore, type KeptChange } from '../../src/console/change/changeStore.ts'

const changeOf = (owner: string) => ({ owner, submissions: [] }) as unknown as KeptChange

test('one who makes preview after preview loses their own, and nobody else loses any', () => {
  const kept = createChangeStore()
  const ann = kept.keep(changeOf('ann'))
  const bobs = Array.from({ length: 100 }, () => kept.keep(changeOf('bob')))
  expect(kept.find(ann.token, 'ann')).toBe(ann)
  expect(bobs.filter(({ token }) => kept.find(token, 'bob') !== undefined)).toEqual(bobs.slice(-49))
})
