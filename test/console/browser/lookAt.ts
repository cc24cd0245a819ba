import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const schemes = ['light', 'dark'] as const
const heights: Record<number, number> = { 390: 844, 1280: 800 }
const narrowest = 320

const folderPrefix = 'outboxd-pictures-'
const keptMs = 3_600_000

/** Creates a folder for the pictures of this run. A later run deletes folders that are older than an hour. */
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
 * Examines a page in light and dark, on a wide screen and on a phone.
 *
 * @param picture returns the path of a picture by width and scheme; without it no pictures are taken
 * @returns violations that axe-core finds, elements wider than the screen, and on a phone what is too small for a thumb
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
    for (const wide of await readOverflow(page)) found.push(`${width}: ${wide}`)
    if (Number(width) === 390)
      for (const small of await page.evaluate<string[]>(tooSmall)) found.push(`too small for a thumb: ${small}`)
  }
  return found
}

/** Lists elements that make the page scroll sideways. A table that is too wide scrolls within itself. */
export async function readOverflow(page: Page): Promise<string[]> {
  // Plots are redrawn after the width has changed.
  const fits = page.waitForFunction(`${widerThanScreen}.length === 0`, undefined, { timeout: 2_000 })
  return fits.then(
    () => [],
    () => page.evaluate<string[]>(widerThanScreen),
  )
}

/** Lists the violations that axe-core finds on a page, with their elements. */
async function readViolations(page: Page): Promise<string[]> {
  await page.evaluate(`typeof axe === 'undefined' && (() => { ${axe} })()`)
  return page.evaluate<string[]>(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, help, nodes }) => id + ': ' + help + ' at ' + nodes.slice(0, 5).map(({ target, any }) =>
      target.join(' ') + (any[0] ? ' (' + any[0].message + ')' : '')).join('; ')))`)
}

/** What a thumb hits: 44 px high. Links in a text, and a box to tick beside its row, may be smaller. */
const tooSmall = `[...document.querySelectorAll('button, .button, summary, select, input, label.tick, nav a, .causes a, .counts a')]
  .filter((each) => each.checkVisibility() && !['checkbox', 'hidden'].includes(each.type) && each.getBoundingClientRect().height < 44)
  .map((each) => each.tagName + ' ' + each.textContent.trim().slice(0, 40) + ' ' + each.getBoundingClientRect().height)`

const widerThanScreen = `(() => {
  const root = document.documentElement
  if (root.scrollWidth <= root.clientWidth) return []
  const isWide = (each) => each.getBoundingClientRect().right > root.clientWidth + 1
  const scrolls = (each) => each !== null && each !== root && (getComputedStyle(each).overflowX !== 'visible' || scrolls(each.parentElement))
  const wide = [...document.querySelectorAll('body *')].filter((each) => isWide(each) && !scrolls(each.parentElement))
  return [...wide, ...(wide.length === 0 ? [root] : [])].slice(0, 5)
    .map((each) => each.tagName.toLowerCase() + (each.id && '#' + each.id) + (each.className && '.' + each.className) + ' ' + each.textContent.trim().slice(0, 40))
})()`
