import { expect, test } from 'vitest'
import { StablePositionReader } from '../../src/outbox/stablePosition.ts'
import type { Database } from '../../src/postgres/database.ts'

const shape = {
  qualified: 'public.sale',
  columns: new Map(),
  hasSystemColumns: true,
  hasCustomCode: false,
}

/** A reader whose queries the test answers in any order. */
function setup() {
  const answers: ((highest: string, ...writers: string[]) => void)[] = []
  const query = () =>
    new Promise((resolve) => {
      answers.push((highest, ...writers) =>
        resolve({ rows: [{ standby: false, drawn: '9', sequenceFile: '1', highest, writers }] }),
      )
    })
  const reader = new StablePositionReader({ query } as unknown as Database, shape, 'id')
  const answer = (read: number, highest: string, ...writers: string[]) => answers[read]?.(highest, ...writers)
  return { read: async () => (await reader.read()).upTo, answer }
}

test('a number is stable once the writers that were open when it was read have ended', async () => {
  const { read, answer } = setup()
  const reads = [read()]
  answer(0, '8', 'a')
  expect(await reads[0]).toBe(null)
  reads.push(read())
  answer(1, '9', 'b')
  expect(await reads[1]).toBe('8')
})

test('an answer that comes late makes no number stable, because its writers may be older', async () => {
  const { read, answer } = setup()
  const [earlier, later] = [read(), read()]
  answer(1, '8', 'writes 7')
  expect(await later).toBe(null)
  answer(0, '6', 'wrote 5')
  expect(await earlier).toBe(null)
  const last = read()
  answer(2, '8')
  expect(await last).toBe('8')
})
