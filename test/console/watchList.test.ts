import { expect, test } from 'vitest'
import { asShown, listTopic, watchLists } from '../../src/console/records/watchList.ts'
import type { Step } from '../../src/ledger/operator/readSubmissionDetail.ts'

const step = (id: number, more: Partial<Step> = {}): Step => ({
  ...{ id: String(id), from: 'accepted', to: 'failed', type: 'data', key: null, code: null, transactionId: null },
  ...{ mayHaveArrived: false, ...more },
})

/** @param steps in the order of their ids; the test adds to them */
function watch(steps: Step[]) {
  const readSteps = async (afterId: string, most: number) =>
    steps.filter(({ id }) => BigInt(id) > BigInt(afterId)).slice(0, most)
  const topic = watchLists(
    async () => ({ readSteps, readLastEventId: async () => steps.at(-1)?.id ?? '0' }),
    () => 0,
  )
  const query = { filters: {}, order: 'longest', byCause: false, from: null } as const
  const key = listTopic(steps.at(-1)?.id ?? '0', query).replace('records:', '')
  const look = async (...others: string[]) => (await topic.readVersions([...others, key])).get(key)
  return Object.assign(look, { lookAt: (other: string) => topic.readVersions([other]) })
}

test.each([
  '999999999999999999.',
  '0.',
  '-1.',
  '99999999999999999999999.',
  'x',
])('a list after %s, which somebody made up, changes nothing for others', async (other) => {
  const steps = Array.from({ length: 5_000 }, (_, i) => step(i + 1, { from: 'queued', to: 'sending' }))
  const look = watch(steps)
  await look.lookAt(other)
  expect(await look(other)).toBe(asShown)
  expect(await look(other)).toBe(asShown)
  steps.push(step(5_001))
  expect(await look(other)).toBe('newer')
})

test('a list over a long past in which nothing happens stays as it was shown, however often it is looked at', async () => {
  const look = watch(Array.from({ length: 5_000 }, (_, i) => step(i + 1)))
  expect([await look(), await look(), await look()]).toEqual([asShown, asShown, asShown])
})

test('what comes to a list is told of, and what is none of its own is not', async () => {
  const steps = [step(1)]
  const look = watch(steps)
  expect(await look()).toBe(asShown)
  steps.push(step(2, { from: 'queued', to: 'sending' }))
  expect(await look()).toBe(asShown)
  steps.push(step(3))
  expect(await look()).toBe('newer')
})
