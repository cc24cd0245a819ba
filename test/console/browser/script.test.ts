import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { lacksBrowser, openBrowser } from '../../support/browser.ts'
import { checkout } from '../../support/program.ts'

/** assets/console.js in a browser, with a server whose answers the test decides. */
describe.skipIf(lacksBrowser("the console's script"))('a page that is live', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await openBrowser()
  })
  afterAll(() => browser?.close())

  test('is updated when its version changes, and an open element stays open', async () => {
    const { page, server } = await open(`<details id="d"><summary>first</summary>inside</details>`)
    await page.locator('summary').click()
    await page.locator('h1').click()
    server.change(`<details id="d"><summary>second</summary>inside</details>`)
    await page.getByText('second').waitFor()
    expect(await page.getByText('inside').isVisible()).toBe(true)
  })

  test('also shows a change during its update', async () => {
    const { page, server } = await open('first')
    const letGo = server.holdAnswers()
    server.change('second')
    await server.isAsked()
    server.change('third')
    letGo()
    await page.getByText('third').waitFor()
  })

  test('does not update a field while the user types in it, and updates once the focus leaves', async () => {
    const { page, server } = await open('<label>reason <input></label> first')
    const reason = page.getByLabel('reason')
    await reason.fill('half a sen')
    server.change('<label>reason <input></label> second')
    await server.isAsked()
    expect(await reason.inputValue()).toBe('half a sen')
    await page.locator('h1').click()
    await page.getByText('second').waitFor()
  })

  test('says that it is old while the server is away, and removes that message afterwards', async () => {
    const { page, server } = await open('first')
    server.goAway()
    await page.getByText('What is shown is old').waitFor()
    server.change('second')
    await page.getByText('second').waitFor()
    expect(await page.locator('#said').textContent()).toBe('')
  })

  test('leaves times as the server wrote them, and counts ages on', async () => {
    const ago = (ms: number) => new Date(Date.now() - ms).toISOString()
    const { page } = await open(
      `<time datetime="2026-11-22T04:06:07.890Z">2026-11-22 04:06:07Z</time>
<time data-age datetime="${ago(59_000)}">59 s ago</time> <time data-age datetime="${ago(-7_500_000)}">in 2 h</time>`,
    )
    await page.getByText(/^1 min( \d+ s)? ago$/).waitFor()
    expect(await page.locator('time').allTextContents()).toEqual([
      '2026-11-22 04:06:07Z',
      expect.stringMatching(/^1 min/),
      expect.stringMatching(/^in 2 h [45] min$/),
    ])
  })

  test('does not replace a list while a record is ticked, and says so', async () => {
    const list = (words: string) => `<input type="checkbox" name="id" value="1"> ${words}`
    const { page, server } = await open(list('first'))
    await page.getByRole('checkbox').check()
    await page.locator('h1').click()
    server.change(list('second'))
    await page.getByText('It shows when no record is ticked').waitFor()
    await page.getByRole('checkbox').uncheck()
    await page.locator('h1').click()
    await page.getByText('second').waitFor()
  })

  test('copies a command and an id, also after an update', async () => {
    const { page, server } = await open('<p class="foreign">Run <code>outboxd status</code></p>')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    server.change('<p>Id <span data-copy><bdi>7f0c-1</bdi></span></p>')
    await page.getByRole('button', { name: 'Copy 7f0c-1' }).click()
    await page.getByText('Copied').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('7f0c-1')
  })

  async function open(contents: string): Promise<{ page: Page; server: LivePage }> {
    const server = await serveLivePage(contents)
    const page = await browser.newPage({ timezoneId: 'Europe/Berlin' })
    onTestFinished(async () => {
      await page.close()
      server.close()
    })
    await page.goto(server.url)
    await server.isFollowed()
    return { page, server }
  }
})

interface LivePage {
  url: string
  /** Changes the contents and the version. */
  change(contents: string): void
  /** Delays the answers of the page. @returns a function that releases them */
  holdAnswers(): () => void
  /** Waits until the browser has asked for the page again. */
  isAsked(): Promise<void>
  isFollowed(): Promise<void>
  /** Answers nothing until the next `change`. */
  goAway(): void
  close(): void
}

async function serveLivePage(first: string): Promise<LivePage> {
  const now = { contents: first, version: 1 }
  const followed = Promise.withResolvers<void>()
  let asked = Promise.withResolvers<void>()
  let held = Promise.resolve()
  let isAway = false
  const server = createServer(async ({ url }, response) => {
    if (url === '/console.js') return response.end(readFileSync(join(checkout, 'assets', 'console.js')))
    if (isAway) return response.destroy()
    if (url === '/version') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ version: `${now.version}` }))
      return followed.resolve()
    }
    const text = pageOf(now)
    asked.resolve()
    await held
    response.writeHead(200, { 'content-type': 'text/html' }).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    change(contents) {
      now.contents = contents
      now.version += 1
      isAway = false
      asked = Promise.withResolvers()
    },
    holdAnswers() {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
    isAsked: () => asked.promise,
    isFollowed: () => followed.promise,
    goAway() {
      isAway = true
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function pageOf({ contents, version }: { contents: string; version: number }): string {
  return `<!doctype html><title>live</title><script src="/console.js" defer></script>
<body data-watch="/version" data-version="${version}"><p id="said"></p><h1>Live</h1><div id="part" data-live>${contents}</div></body>`
}
