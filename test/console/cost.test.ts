import { setTimeout as after } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Fixture, failedE003, openFixture } from '../commands/fixture.ts'
import { until } from '../support/until.ts'
import { type OpenedConsole, openConsole } from './openConsole.ts'

/** What the console costs the database, by whoever looks: it is counted for this long, while other tests may run. */
const countedMs = 5_000
const perSecondMost = 5

let fixture: Fixture
let served: OpenedConsole
beforeAll(async () => {
  fixture = await openFixture()
  await fixture.reset()
  served = await openConsole(fixture.context())
})
afterAll(async () => {
  await served[Symbol.asyncDispose]()
  await fixture[Symbol.asyncDispose]()
})

/** Opens what a page of a browser would: the page, and the stream that it says. */
async function look(path: string, signal: AbortSignal): Promise<void> {
  const [, topic = ''] = /data-topic="([^"]+)"/.exec((await served.get(path)).text) ?? []
  expect(topic, path).not.toBe('')
  const stream = await fetch(`${served.url}/live?on=${encodeURIComponent(topic.replaceAll('&amp;', '&'))}`, { signal })
  const reader = stream.body?.getReader()
  await until(
    async () => new TextDecoder().decode((await reader?.read())?.value),
    (text) => text.includes('event: version'),
  )
}

test('sixty who look at everything that there is cost fewer than five statements a second, and nobody nothing', async () => {
  const ids = [await fixture.end(failedE003), await fixture.end(failedE003)]
  const pages = ['/', ...ids.map((id) => `/records/${id}`)]
  const gone = new AbortController()
  await Promise.all(Array.from({ length: 60 }, (_, i) => look(pages[i % pages.length] ?? '/', gone.signal)))
  const asked = vi.spyOn(pg.Client.prototype, 'query')
  await after(countedMs)
  const perSecond = asked.mock.calls.length / (countedMs / 1_000)
  gone.abort()
  await until(
    async () => {
      const before = asked.mock.calls.length
      await after(3_500) // a round of every topic
      return asked.mock.calls.length - before
    },
    (more) => more === 0,
  )
  asked.mockRestore()
  expect(perSecond).toBeLessThan(perSecondMost)
})
