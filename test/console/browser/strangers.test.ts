import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { hashPassword } from '../../../src/console/guard/passwordHash.ts'
import { lacksBrowser, openBrowser, openWindow, type Window } from '../../support/browser.ts'
import { type Guarded, openGuarded } from '../guard/openGuarded.ts'
import { readLook } from './lookAt.ts'

/** Attacks in a browser. test/console/guard tests the server with requests of any form. */
describe.skipIf(lacksBrowser('the console before strangers'))('a stranger', () => {
  const password = 'four words nobody says together'
  let browser: Browser
  let open: Guarded
  let closed: Guarded
  beforeAll(async () => {
    const hash = await hashPassword(password)
    const names = '--host-resolver-rules=MAP evil.example 127.0.0.1'
    ;[browser, open, closed] = await Promise.all([openBrowser([names]), openGuarded(), openGuarded({ password: hash })])
  })
  afterAll(async () => {
    await browser?.close()
    await open?.[Symbol.asyncDispose]()
    await closed?.[Symbol.asyncDispose]()
  })
  beforeEach(() => void open.changes.splice(0))

  test.each([
    'evil.example',
    '127.0.0.1',
  ])('cannot read, post to or frame the console from a page at %s in an operator’s browser', async (host) => {
    const page = await visitSite(host, sitePage(open.url))
    const results = await page.evaluate<Record<string, unknown>>('attack()')
    expect(results).toEqual({ read: 'TypeError', posted: 'TypeError', framed: 'nothing' })
    await Promise.all([page.waitForURL(`${open.url}/change`), page.evaluate('document.forms[0].submit()')])
    expect(await page.textContent('main')).toContain('A page of another site sent this form. Nothing was changed.')
    expect(open.changes).toEqual([])
  })

  test('cannot reach the console by a foreign host name that leads to this machine', async () => {
    const page = await browser.newPage()
    const answer = await page.goto(`${open.url.replace('127.0.0.1', 'evil.example')}/change`)
    expect({ status: answer?.status(), forms: await page.locator('form').count() }).toEqual({ status: 403, forms: 0 })
    await page.close()
  })

  test('needs the password, and sees a message if it is wrong', async () => {
    await using window = await newWindow(closed)
    const page = await window.open('/change')
    expect(page.url()).toBe(`${closed.url}/change`)
    await signIn(page, 'Ada', 'a guess')
    expect(await page.textContent('main')).toContain('Wrong password.')
    await signIn(page, 'Ada', password)
    await page.getByText('operator Ada').waitFor()
    expect(page.url()).toBe(`${closed.url}/change`)
    expect(await page.evaluate('document.cookie')).toBe('')
  })

  test('cannot use the cookie of another console or of a session that has signed out', async () => {
    await using other = await openGuarded({ password: await hashPassword(password) })
    await using window = await newWindow(other)
    const page = await window.open('/login')
    await signIn(page, 'Ada', password)
    await page.getByText('operator Ada').waitFor()
    const cookie = await sessionCookie(window)
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax' })
    await using thief = await newWindow(closed)
    await signIn(await thief.open('/login'), 'Eve', password)
    const own = await sessionCookie(thief)
    await thief.context.addCookies([{ name: own.name, value: cookie.value, url: closed.url }])
    expect(await (await thief.open('/change')).title()).toContain('Sign in')

    await page.getByRole('button', { name: 'sign out' }).click()
    await window.context.addCookies([{ name: cookie.name, value: cookie.value, url: other.url }])
    await page.goto(`${other.url}/change`)
    expect(await page.title()).toContain('Sign in')
  })

  test('can send a signed-in operator a link, which opens the page that it names', async () => {
    await using window = await newWindow(closed)
    const page = await window.open('/login')
    await signIn(page, 'Ada', password)
    await page.goto('data:text/html,a message of a chat')
    await page.evaluate(`location.assign('${closed.url}/change?from=chat')`)
    await page.getByText('operator Ada').waitFor()
    expect(page.url()).toBe(`${closed.url}/change?from=chat`)
  })

  test('sees a sign-in page that passes axe-core and fits the screen, in light and dark, wide and narrow', async () => {
    await using window = await newWindow(closed)
    const page = await window.open('/login')
    expect(await readLook(page)).toEqual([])
    expect(window.complaints).toEqual([])
  })

  function newWindow({ url }: Guarded): Promise<Window> {
    return openWindow(browser, { origin: url })
  }

  async function visitSite(host: string, html: string): Promise<Page> {
    const site = createServer((_request, response) => response.setHeader('content-type', 'text/html').end(html))
    await once(site.listen(0, '127.0.0.1'), 'listening')
    const page = await browser.newPage()
    onTestFinished(async () => {
      await page.close()
      site.close()
      site.closeAllConnections()
    })
    await page.goto(`http://${host}:${(site.address() as AddressInfo).port}/`)
    return page
  }
})

async function sessionCookie({ context }: Window) {
  const cookie = (await context.cookies()).find(({ name, path }) => name.startsWith('outboxd_console_') && path === '/')
  if (cookie === undefined) throw new Error('this browser has not signed in')
  return cookie
}

async function signIn(page: Page, name: string, password: string): Promise<void> {
  await page.getByLabel('Your name').fill(name)
  await page.getByLabel('Password').fill(password)
  await Promise.all([page.waitForLoadState('load'), page.getByRole('button', { name: 'sign in' }).click()])
}

/** A page of another site, which tries to read, post to and frame the console with the operator's cookies. */
function sitePage(target: string): string {
  return `<!doctype html><title>another site</title>
<form method="post" action="${target}/change"></form>
<iframe src="${target}/change"></iframe>
<script>
  async function attack() {
    const read = await fetch('${target}/change', { credentials: 'include' }).then(() => 'read', (error) => error.name)
    const body = new URLSearchParams()
    const posted = await fetch('${target}/change', { method: 'POST', mode: 'no-cors', credentials: 'include', body })
      .then(() => 'answered', (error) => error.name)
    let framed = 'nothing'
    try { framed = frames[0].document.body.textContent || 'nothing' } catch {}
    return { read, posted, framed }
  }
</script>`
}
