import { setTimeout as after } from 'node:timers/promises'
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { failedE003, openFixtureForFile } from '../commands/fixture.ts'
import { openConsole } from '../console/openConsole.ts'
import { openForFile } from '../support/openForFile.ts'
import { until } from '../support/until.ts'

/** How long statements of the console are counted. Other tests may run meanwhile. */
const countedMs = 5_000
const perSecondMost = 5
/** As assets/console.js. */
const lookEveryMs = 500

const fixture = openFixtureForFile()
const served = openForFile(() => openConsole(fixture.context()))

/** Asks for a page and then again and again for its version, like the browser. */
async function look(path: string, signal: AbortSignal): Promise<void> {
  const [, watched = ''] = /data-watch="([^"]+)"/.exec((await served.get(path)).text) ?? []
  expect(watched, path).not.toBe('')
  const looking = setInterval(() => void served.get(watched).catch(() => {}), lookEveryMs)
  signal.addEventListener('abort', () => clearInterval(looking))
}

test('60 open pages cost fewer than five statements a second, and closed pages none', async () => {
  const ids = [await fixture.end(failedE003), await fixture.end(failedE003)]
  const pages = ['/', '/records', '/audit', ...ids.map((id) => `/records/${id}`)]
  const gone = new AbortController()
  await Promise.all(Array.from({ length: 60 }, (_, i) => look(pages[i % pages.length] ?? '/', gone.signal)))
  const asked = vi.spyOn(pg.Client.prototype, 'query')
  await after(countedMs)
  const perSecond = asked.mock.calls.length / (countedMs / 1_000)
  gone.abort()
  await until(
    async () => {
      const before = asked.mock.calls.length
      await after(3_500) // longer than one round of every topic
      return asked.mock.calls.length - before
    },
    (more) => more === 0,
  )
  asked.mockRestore()
  expect(perSecond).toBeLessThan(perSecondMost)
})
