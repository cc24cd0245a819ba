import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** Debian's package `chromium`, which .ci/run installs, and where others put theirs. */
const usualPaths = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** The browser to look with: what CHROMIUM_PATH names (empty: none shall be), or one at a usual path; undefined where there is none. */
export const chromiumPath = (process.env.CHROMIUM_PATH ?? usualPaths.find((path) => existsSync(path))) || undefined

/** Says in one plain line why tests are skipped that need a browser. @returns whether there is none */
export function lacksBrowser(what: string): boolean {
  if (chromiumPath !== undefined) return false
  const looked = `no chromium at ${usualPaths.join(', ')}`
  process.stderr.write(`${what}: skipped, ${looked}; install one, or name it in CHROMIUM_PATH\n`)
  return true
}

/**
 * A real browser without a window; as root, and in a container, it has to do without its own sandbox.
 *
 * @param args further ones of chromium's own
 */
export async function openBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath as string,
    chromiumSandbox: false,
    args: ['--disable-gpu', '--disable-dev-shm-usage', ...args],
  })
}

/** A person's window: pages with cookies of their own, and what those pages complained of. */
export interface Window extends AsyncDisposable {
  readonly context: BrowserContext
  /** A further tab. */
  open(url: string): Promise<Page>
  /** What no page may do: errors and warnings on the console, scripts that threw, requests that failed or went elsewhere. */
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
