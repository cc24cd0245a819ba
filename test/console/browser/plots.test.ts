import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Fixture, openFixture } from '../../commands/fixture.ts'
import { lacksBrowser, openBrowser, openWindow } from '../../support/browser.ts'
import { type OpenedConsole, openConsole } from '../openConsole.ts'

/** assets/now.js: the plots of the page Now. */
describe.skipIf(lacksBrowser('the plots of the page Now'))('the plots', () => {
  let fixture: Fixture
  let served: OpenedConsole
  let browser: Browser
  beforeAll(async () => {
    fixture = await openFixture()
    await fixture.reset()
    await fixture.ledger.pool.query(
      `insert into outboxd.period (span, began_at, completed, failed, rejected, uncertain, discarded, wait_p50_ms, wait_p95_ms)
       select 'minute', date_trunc('minute', now()) - i * interval '1 minute', 10, 0, 0, 0, 0, 20000, 42000
       from generate_series(1, 50) i`,
    )
    served = await openConsole(fixture.context())
    browser = await openBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await served?.[Symbol.asyncDispose]()
    await fixture?.[Symbol.asyncDispose]()
  })

  test('appear when the first minute of a new ledger is over', async () => {
    const { page } = await open('/?range=week')
    await page.getByText('No minute has been written yet').waitFor()
    const json = { range: 'week', atMs: [0], plots: [] }
    await page.route('**/now/history.json?*', (route) => route.fulfill({ json }), { times: 1 })
    const loadedAgain = page.waitForEvent('load')
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await loadedAgain
  })

  async function open(path: string) {
    const window = await openWindow(browser, { origin: served.url })
    onTestFinished(() => window[Symbol.asyncDispose]())
    return { page: await window.open(path), window }
  }

  test('say what they are pointed at, under a policy that lets no script and no style of the page run', async () => {
    const { page, window } = await open('/')
    await page.locator('#plot-wait .u-over').hover()
    await page.locator('#plot-wait [data-series]', { hasText: /p95 42 s/ }).waitFor()
    expect(window.complaints).toEqual([])
  })

  test('take in a minute that is over without a reload of the page', async () => {
    const { page } = await open('/')
    await page.locator('#plot-ended .u-over').waitFor()
    expect(await page.locator('#plot-ended [data-said]').textContent()).toMatch(/^500 in the last hour/)
    await page.route('**/now/history.json?*', async (route) => {
      const response = await route.fetch()
      const history = await response.json()
      history.plots[0].said = 'one more'
      await route.fulfill({ response, json: history })
    })
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
    await page.locator('#plot-ended [data-said]', { hasText: 'one more' }).waitFor()
  })
})
