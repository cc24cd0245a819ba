import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { checkout } from '../../support/program.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Colours are other in the dark, and what stands where is other on a phone: axe-core takes its time, and looks at each once. */
const looks = [
  ['light', (width: number) => width > 1_000],
  ['dark', (width: number) => width < 1_000],
] as const
const heights: Record<number, number> = { 390: 844, 1440: 900 }
const narrowest = 320

const folderPrefix = 'outboxd-pictures-'
const keptMs = 3_600_000

/** A folder for the pictures of this run, which stays after it for an hour or longer: until a later run. */
export function createPicturesFolder(): string {
  const [parent, uid] = ['/tmp', process.getuid?.()]
  for (const name of readdirSync(parent).filter((each) => each.startsWith(folderPrefix))) {
    const { uid: owner, mtimeMs } = statSync(join(parent, name), { throwIfNoEntry: false }) ?? {}
    if (owner === uid && Date.now() - (mtimeMs ?? 0) > keptMs)
      rmSync(join(parent, name), { recursive: true, force: true })
  }
  const folder = mkdtempSync(join(parent, folderPrefix))
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
  for (const [colorScheme, isExamined] of looks) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    for (const [width, height] of Object.entries(heights)) {
      await page.setViewportSize({ width: Number(width), height })
      const seen = `${width}-${colorScheme}`
      if (picture !== undefined) await page.screenshot({ path: picture(seen), fullPage: true, animations: 'disabled' })
      if (isExamined(Number(width)))
        for (const violation of await readViolations(page)) found.push(`${seen}: ${violation}`)
    }
  }
  for (const width of [narrowest, ...Object.keys(heights)]) {
    await page.setViewportSize({ width: Number(width), height: 844 })
    for (const wide of await readOverflow(page)) found.push(`${width}: ${wide}`)
  }
  return found
}

/** What makes somebody scroll the page sideways; a table that is too wide scrolls within itself. */
export async function readOverflow(page: Page): Promise<string[]> {
  // Plots are drawn anew for a width after it has changed.
  const fits = page.waitForFunction(`${widerThanScreen}.length === 0`, undefined, { timeout: 2_000 })
  return fits.then(
    () => [],
    () => page.evaluate<string[]>(widerThanScreen),
  )
}

const docsPictures = join(checkout, 'docs', 'pictures')

/** Renews the picture of a page that docs show, where they show one. */
export async function takeDocsPicture(page: Page, name: string): Promise<void> {
  const path = join(docsPictures, `${name}.png`)
  if (!existsSync(path)) return
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await page.setViewportSize({ width: 1200, height: 600 })
  const height = Math.min(950, await page.evaluate<number>('document.documentElement.scrollHeight'))
  await page.setViewportSize({ width: 1200, height })
  await readOverflow(page)
  await page.screenshot({ path, animations: 'disabled' })
}

/** What axe-core has against a page, each with where it stands. */
async function readViolations(page: Page): Promise<string[]> {
  await page.evaluate(`typeof axe === 'undefined' && (() => { ${axe} })()`)
  return page.evaluate<string[]>(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, help, nodes }) => id + ': ' + help + ' at ' + nodes.slice(0, 5).map(({ target, any }) =>
      target.join(' ') + (any[0] ? ' (' + any[0].message + ')' : '')).join('; ')))`)
}

const widerThanScreen = `(() => {
  const root = document.documentElement
  if (root.scrollWidth <= root.clientWidth) return []
  const isWide = (each) => each.getBoundingClientRect().right > root.clientWidth + 1
  const scrolls = (each) => each !== null && each !== root && (getComputedStyle(each).overflowX !== 'visible' || scrolls(each.parentElement))
  const wide = [...document.querySelectorAll('body *')].filter((each) => isWide(each) && !scrolls(each.parentElement))
  return [...wide, ...(wide.length === 0 ? [root] : [])].slice(0, 5)
    .map((each) => each.tagName.toLowerCase() + (each.id && '#' + each.id) + (each.className && '.' + each.className) + ' ' + each.textContent.trim().slice(0, 40))
})()`
