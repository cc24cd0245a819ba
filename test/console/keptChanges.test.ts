import { expect, test } from 'vitest'
import { type KeptChange, keepChanges } from '../../src/console/change/keptChanges.ts'

const changeOf = (owner: string) => ({ owner, submissions: [] }) as unknown as KeptChange

test('one who makes preview after preview loses their own, and nobody else loses any', () => {
  const kept = keepChanges()
  const ann = kept.keep(changeOf('ann'))
  const bobs = Array.from({ length: 100 }, () => kept.keep(changeOf('bob')))
  expect(kept.find(ann.token, 'ann')).toBe(ann)
  expect(bobs.filter(({ token }) => kept.find(token, 'bob') !== undefined)).toEqual(bobs.slice(-49))
})
