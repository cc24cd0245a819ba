import { setTimeout as after } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createLive, type LiveNews } from '../../../src/console/live/createLive.ts'
import { until } from '../../support/until.ts'

const everyMs = 20

/** A topic whose versions the test sets, and how often and for which keys they were read. */
function setup() {
  const live = createLive((error) => (error as Error).message)
  onTestFinished(() => live[Symbol.dispose]())
  const versions = new Map<string, string>()
  const asked: string[][] = []
  const away = { is: false }
  live.addTopic('record', {
    everyMs,
    async readVersions(keys) {
      asked.push([...keys])
      if (away.is) throw new Error('the ledger is away')
      return versions
    },
  })
  const follow = (topic: string) => {
    const news: LiveNews[] = []
    const stop = live.follow(topic, (told) => news.push(told))
    return { news, stop }
  }
  return { live, versions, asked, away, follow }
}

test('whoever looks is told what stands, and then each change, once', async () => {
  const { versions, follow, asked } = setup()
  versions.set('1', 'a')
  const { news } = follow('record:1')
  await until(
    () => news.length,
    (n) => n === 1,
  )
  const reads = asked.length
  await until(
    () => asked.length,
    (n) => n > reads + 2,
  )
  versions.set('1', 'b')
  await until(
    () => news.length,
    (n) => n === 2,
  )
  expect(news).toEqual([
    { kind: 'version', topic: 'record:1', version: 'a' },
    { kind: 'version', topic: 'record:1', version: 'b' },
  ])
})

test('however many look at however much, it is read once a round, and not at all when nobody looks', async () => {
  const { versions, follow, asked } = setup()
  const viewers = Array.from({ length: 300 }, (_, i) => follow(`record:${i % 100}`))
  for (let i = 0; i < 100; i++) versions.set(String(i), 'a')
  await until(
    () => viewers.every(({ news }) => news.length === 1),
    (all) => all,
  )
  expect(new Set(asked.at(-1)).size).toBe(100)
  const rounds = asked.length
  await after(10 * everyMs)
  expect(asked.length - rounds).toBeLessThanOrEqual(11)
  for (const { stop } of viewers) stop()
  await after(2 * everyMs) // one that is under way comes to its end
  const last = asked.length
  await after(10 * everyMs)
  expect(asked.length).toBe(last)
})

test('who comes later is told at once what the others know', async () => {
  const { versions, follow } = setup()
  versions.set('1', 'a')
  const first = follow('record:1')
  await until(
    () => first.news.length,
    (n) => n === 1,
  )
  expect(follow('record:1').news).toEqual(first.news)
})

test('what cannot be read is said once, and what stands when it can be read again', async () => {
  const { versions, away, asked, follow } = setup()
  versions.set('1', 'a')
  away.is = true
  const { news } = follow('record:1')
  await until(
    () => asked.length,
    (n) => n > 3,
  )
  expect(news).toEqual([{ kind: 'trouble', topic: 'record:1', message: 'the ledger is away' }])
  away.is = false
  await until(
    () => news.at(-1),
    (told) => told?.kind === 'version',
  )
})

test('what does not come back is said before it ends, to whoever comes meanwhile too, is not asked again, and is over when it is', async () => {
  const { live } = setup()
  const reading = Promise.withResolvers<ReadonlyMap<string, string>>()
  let reads = 0
  live.addTopic('slow', {
    everyMs,
    readVersions: () => (++reads === 2 ? reading.promise : Promise.resolve(new Map([['1', 'a']]))),
  })
  const told = (key: string) => {
    const news: LiveNews[] = []
    live.follow(`slow:${key}`, (one) => news.push(one))
    return {
      news,
      says: (kind: string) =>
        until(
          () => news.at(-1),
          (last) => last?.kind === kind,
        ),
    }
  }
  const first = told('1')
  await first.says('version')
  await first.says('trouble')
  expect(first.news).toMatchObject([{ version: 'a' }, { message: expect.stringContaining('has not answered for 2 s') }])
  await told('2').says('trouble')
  expect(reads).toBe(2)
  reading.resolve(new Map([['1', 'a']]))
  await first.says('version')
  expect(first.news).toHaveLength(3)
})

test('a key that does not exist has the version that is empty', async () => {
  const { follow } = setup()
  const { news } = follow('record:404')
  await until(
    () => news.length,
    (n) => n === 1,
  )
  expect(news).toEqual([{ kind: 'version', topic: 'record:404', version: '' }])
})
