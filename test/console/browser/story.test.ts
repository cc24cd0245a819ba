import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lacksBrowser, type Window } from '../../support/browser.ts'
import { createPicturesFolder, readLook } from './lookAt.ts'
import { type Night, startNight } from './night.ts'

/** The night of somebody who is called: each test is what happens next, on the same parts. */
describe.skipIf(lacksBrowser('the console in a browser'))('a night', () => {
  let night: Night
  let window: Window
  let page: Page
  beforeAll(async () => {
    night = await startNight()
    window = await night.openWindow()
    page = await window.open('/')
  })
  afterAll(async () => {
    await window?.[Symbol.asyncDispose]()
    await night?.[Symbol.asyncDispose]()
  })

  test('the service goes down, and the page says so within 3 s without being loaded again', async () => {
    await page.evaluate('window.isTheSame = true')
    await night.control('PATCH', 'settings', { down: true })
    const outboxId = await night.insert({ field2: 'while it is down' })
    const saidMs = await untilSays(page, 'the service says that it is down')
    expect(saidMs).toBeLessThan(3_000)
    await night.control('PATCH', 'settings', { down: false })
    await night.becomes(outboxId, 'completed')
    await untilSays(page, 'All is well')
    expect(await page.evaluate('window.isTheSame')).toBe(true)
  })

  test('somebody pauses, says why, and resumes; another window shows it', async () => {
    await using other = await night.openWindow()
    const theirs = await other.open('/')
    await page.getByLabel('why').fill('the service is being upgraded')
    await page.getByLabel('for how long').fill('2h')
    await page.getByRole('button', { name: 'Pause…' }).click()
    await page.getByRole('button', { name: 'Pause now' }).click()
    await untilSays(theirs, 'the service is being upgraded')
    await page.getByRole('button', { name: 'Resume…' }).click()
    await page.getByRole('button', { name: 'Resume now' }).click()
    await untilSays(theirs, 'Nothing is paused.')
    expect(other.complaints).toEqual([])
  })

  const pages = ['/', '/records', '/mapping', '/audit']
  const folder = createPicturesFolder()
  test.each(pages)('%s can be read by everybody, in light and dark, wide and narrow', async (path) => {
    const looked = await window.open(path)
    const name = path.slice(1) || 'now'
    expect(await readLook(looked, (seen) => join(folder, `${name}-${seen}.png`))).toEqual([])
    await looked.close()
  })

  test('no page has complained', () => {
    expect(window.complaints).toEqual([])
  })
})

/** Waits until the page says something. @returns how long that took, milliseconds */
async function untilSays(page: Page, words: string): Promise<number> {
  const beganMs = performance.now()
  await page.locator('main', { hasText: words }).waitFor()
  return performance.now() - beganMs
}
