import { mkdtempSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const schemes = ['light', 'dark'] as const
const heights: Record<number, number> = { 390: 844, 1440: 900 }
const narrowest = 320

/** A folder for the pictures of this run, which stays: not the run's own, of which nothing is left. */
export function createPicturesFolder(): string {
  const folder = mkdtempSync('/tmp/outboxd-console-')
  process.stderr.write(`pictures of the console: ${folder}\n`)
  return folder
}

/**
 * Looks at a page as different people do: in light and dark, on a wide screen and on a phone.
 *
 * @param picture where a picture goes, by the width and the scheme; without it none is taken
 * @returns what axe-core finds, and what is wider than the screen
 */
export async function readLook(page: Page, picture?: (seen: string) => string): Promise<string[]> {
  const found: string[] = []
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    for (const [width, height] of Object.entries(heights)) {
      await page.setViewportSize({ width: Number(width), height })
      const seen = `${width}-${colorScheme}`
      if (picture !== undefined) await page.screenshot({ path: picture(seen), fullPage: true, animations: 'disabled' })
      for (const violation of await readViolations(page)) found.push(`${seen}: ${violation}`)
    }
  }
  for (const width of [narrowest, ...Object.keys(heights)]) {
    await page.setViewportSize({ width: Number(width), height: 844 })
    // Plots are drawn anew for the width after that.
    const fits = page.waitForFunction(`${widerThanScreen}.length === 0`, undefined, { timeout: 2_000 })
    const wide = await fits.then(
      () => [],
      () => page.evaluate<string[]>(widerThanScreen),
    )
    if (wide.length > 0) found.push(`${width}: wider than the screen: ${wide.join(', ')}`)
  }
  return found
}

/** What axe-core has against a page, each with where it stands. */
async function readViolations(page: Page): Promise<string[]> {
  await page.evaluate(`typeof axe === 'undefined' && (() => { ${axe} })()`)
  return page.evaluate<string[]>(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, help, nodes }) => id + ': ' + help + ' at ' + nodes.slice(0, 5).map(({ target, any }) =>
      target.join(' ') + (any[0] ? ' (' + any[0].message + ')' : '')).join('; ')))`)
}

/** What makes somebody scroll the page sideways; a table that is too wide scrolls within itself. */
const widerThanScreen = `(() => {
  const root = document.documentElement
  if (root.scrollWidth <= root.clientWidth) return []
  const isWide = (each) => each.getBoundingClientRect().right > root.clientWidth + 1
  const scrolls = (each) => each !== null && each !== root && (getComputedStyle(each).overflowX !== 'visible' || scrolls(each.parentElement))
  const wide = [...document.querySelectorAll('body *')].filter((each) => isWide(each) && !scrolls(each.parentElement))
  return [...wide, ...(wide.length === 0 ? [root] : [])].slice(0, 5)
    .map((each) => each.tagName.toLowerCase() + (each.id && '#' + each.id) + (each.className && '.' + each.className) + ' ' + each.textContent.trim().slice(0, 40))
})()`
