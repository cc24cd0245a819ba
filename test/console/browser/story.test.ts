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

  test('many failed: what a replay would do is shown, cancelled, shown again and done', async () => {
    await night.control('PATCH', 'settings', { failureShare: 1 })
    const ids = await Promise.all(Array.from({ length: 5 }, (_, i) => night.insert({ field2: `in a bad hour ${i}` })))
    for (const id of ids) await night.becomes(id, 'failed')
    await night.control('DELETE', 'settings')
    await page.goto('/records?state=failed&code=E001')
    const replayAll = page.getByRole('button', { name: 'Replay all that match (5)' })
    await replayAll.click()
    await page.getByRole('heading', { name: 'This would replay 5 records' }).waitFor()
    expect(await page.textContent('main')).toMatch(/requests|minute/)
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.waitForURL('**/records')
    for (const id of ids) await night.becomes(id, 'failed')

    await page.goto('/records?state=failed&code=E001')
    await replayAll.click()
    await page.getByLabel('Reason').fill('the service had a bad hour')
    await page.getByRole('button', { name: 'Replay 5 records' }).click()
    await untilSays(page, 'Replayed 5 records')
    for (const id of ids) await night.becomes(id, 'completed')
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
