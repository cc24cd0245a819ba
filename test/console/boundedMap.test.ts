import { expect, test } from 'vitest'
import { BoundedMap } from '../../src/console/boundedMap.ts'

test('a full map drops the entry that was set longest ago, not one that was set again', () => {
  const map = new BoundedMap<string, number>(2)
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4)
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ])
})
