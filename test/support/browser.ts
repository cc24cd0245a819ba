import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** Paths of Chromium: of Debian's package, which .ci/run installs, and of other systems. */
const usualPaths = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** The browser's path: CHROMIUM_PATH (empty for no browser), otherwise a usual path; undefined if there is none. */
export const chromiumPath = (process.env.CHROMIUM_PATH ?? usualPaths.find((path) => existsSync(path))) || undefined

/** Prints why tests that need a browser are skipped. @returns true if there is no browser */
export function lacksBrowser(what: string): boolean {
  if (chromiumPath !== undefined) return false
  const looked = `no chromium at ${usualPaths.join(', ')}`
  process.stderr.write(`${what}: skipped, ${looked}; install one, or name it in CHROMIUM_PATH\n`)
  return true
}

/**
 * Starts a real browser without a window. As root and in a container, it must run without its own sandbox.
 *
 * @param args more arguments of chromium
 */
export async function openBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath as string,
    chromiumSandbox: false,
    args: ['--disable-gpu', '--disable-dev-shm-usage', ...args],
  })
}

/** A browser window with its own cookies, and the errors of its pages. */
export interface Window extends AsyncDisposable {
  readonly context: BrowserContext
  /** Opens another tab. */
  open(url: string): Promise<Page>
  /** Faults of the pages: console errors and warnings, exceptions, requests that failed or left the host. */
  readonly complaints: string[]
}

/** Opens a window whose pages are watched. */
export async function openWindow(
  browser: Browser,
  { origin, ...options }: BrowserContextOptions & { origin: string },
): Promise<Window> {
  const context = await browser.newContext({ baseURL: origin, viewport: { width: 1440, height: 900 }, ...options })
  const complaints: string[] = []
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`${message.type()}: ${message.text()}`)
  })
  context.on('weberror', (error) => complaints.push(`thrown: ${error.error().message}`))
  context.on('dialog', (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  context.on('request', (request) => {
    const url = new URL(request.url())
    if (url.origin !== origin && url.protocol !== 'data:') complaints.push(`asked elsewhere: ${url.href}`)
  })
  return {
    context,
    complaints,
    async open(url) {
      const page = await context.newPage()
      await page.goto(url)
      return page
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
}
