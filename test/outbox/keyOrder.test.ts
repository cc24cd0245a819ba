import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCapturableRowChooser, idCharsMax, type ScannedRow } from '../../src/outbox/keyOrder.ts'

const row = (outboxId: string, keyHash: string | null, some: Partial<ScannedRow> = {}): ScannedRow => ({
  outboxId,
  type: 'data',
  keyHash,
  excepted: false,
  leftType: null,

  ...some,
})

function choose(
  rows: readonly ScannedRow[],
  { limit = 100, keyRowsMax = 100, skipped = [], held = [] }: Partial<Options> = {},
): { outboxIds: string[]; leftTypes: string[]; isFull: boolean } {
  const choice = createCapturableRowChooser({ limit, keyRowsMax }, new Set(skipped))
  for (const keyHash of held) choice.hold(keyHash)
  for (const each of rows) choice.meet(each)
  return {
    outboxIds: choice.rows.map(({ outboxId }) => outboxId),
    leftTypes: [...choice.leftTypes],
    isFull: choice.isFull(),
  }
}

interface Options {
  limit: number
  keyRowsMax: number
  skipped: string[]
  held: string[]
}

test.each([
  ['its key is excepted', { excepted: true }],
  ['its type is left to another instance', { leftType: 'order' }],
] as const)('a row and only the later rows of its key are left if %s', (_why, some) => {
  const rows = [row('1', 'k'), row('2', 'k', some), row('3', 'k'), row('4', null), row('5', 'l')]
  expect(choose(rows).outboxIds).toEqual(['1', '4', '5'])
})

test('a skipped row and later rows of its key are left, even if its id is longer than a problem stores', () => {
  const long = 'x'.repeat(idCharsMax)
  const rows = [row(`${long}y`, 'k'), row('2', 'k'), row('3', 'l')]
  expect(choose(rows, { skipped: [long] }).outboxIds).toEqual(['3'])
})

test('a skipped row without a key holds back no other row', () => {
  expect(choose([row('1', null), row('2', null), row('3', null)], { skipped: ['2'] }).outboxIds).toEqual(['1', '3'])
})

test('at most keyRowsMax rows of a key are chosen, and none of a held keyHash', () => {
  const rows = [row('1', 'k'), row('2', 'k'), row('3', 'k'), row('4', 'held'), row('5', 'l')]
  expect(choose(rows, { keyRowsMax: 2, held: ['held'] }).outboxIds).toEqual(['1', '2', '5'])
})

test('a key is free if its rows may go and none of them had to wait', () => {
  const choice = createCapturableRowChooser({ limit: 100, keyRowsMax: 1 }, new Set(['5']))
  choice.hold('held')
  for (const each of [row('1', 'long'), row('2', 'long'), row('3', 'k')]) choice.meet(each)
  const rows = [row('4', 'held'), row('5', 'skipped'), row('6', 'long'), row('7', 'k'), row('8', 'new'), row('9', null)]
  expect([...choice.findFreeKeyHashes(rows)]).toEqual(['k', 'new'])
})

test('each type that is left to other instances is returned once', () => {
  const rows = [row('1', 'k', { leftType: 'order' }), row('2', 'k', { leftType: 'order' }), row('3', null)]
  expect(choose(rows)).toEqual({ outboxIds: ['3'], leftTypes: ['order'], isFull: false })
})

test('the choice is full once it has as many rows as the limit', () => {
  expect(choose([row('1', null)], { limit: 1 }).isFull).toBe(true)
})

test('the chosen rows of each key are its first rows', () => {
  const anyRow = fc.record({ keyHash: fc.constantFrom('k', 'l', 'm'), excepted: fc.boolean() })
  fc.assert(
    fc.property(fc.array(anyRow, { maxLength: 30 }), fc.integer({ min: 1, max: 5 }), (met, keyRowsMax) => {
      const rows = met.map(({ keyHash, excepted }, i) => row(String(i), keyHash, { excepted }))
      const taken = new Set(choose(rows, { keyRowsMax }).outboxIds)
      for (const keyHash of ['k', 'l', 'm']) {
        const ofKey = rows.filter((each) => each.keyHash === keyHash)
        const count = ofKey.filter(({ outboxId }) => taken.has(outboxId)).length
        expect(count).toBeLessThanOrEqual(keyRowsMax)
        expect(ofKey.slice(0, count).every(({ outboxId }) => taken.has(outboxId))).toBe(true)
      }
    }),
  )
})
