import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { readLook, readOverflow } from '../../test/console/browser/lookAt.ts'
import { openBrowser } from '../../test/support/browser.ts'
import { checkout } from '../../test/support/program.ts'
import { startConsoleOf, startScenes } from './scenes.ts'

const usage = `npm run pictures -- [--to FOLDER] [--docs]
  Takes each page of the console with no record, one, and hundreds, refused, without a daemon and without a database:
  1280 and 390 px wide, light and dark. Examines each of these looks with axe-core, and leaves with 1 if that finds
  something or a page scrolls sideways.
  --to     where the pictures go (default: pictures, which Git ignores)
  --docs   takes only those of docs/pictures
`
const { values } = parseArgs({
  options: {
    to: { type: 'string', default: join(checkout, 'pictures') },
    docs: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}
mkdirSync(values.to, { recursive: true })
await using scenes = await startScenes()
const { empty, one, hundreds } = scenes.installations
const { rejected, failed, uncertain, completed } = scenes.orders
const browser = await openBrowser()
const findings: string[] = []

/** By name: its path, and what is clicked there before it is looked at. */
type Pages = Record<string, string | readonly [path: string, click: (page: Page) => Promise<unknown>]>
const always: Pages = {
  overview: '/',
  records: '/records',
  causes: '/records?by-cause=on',
  activity: '/audit',
  mapping: '/mapping',
  system: '/system',
  pause: '/pause',
  keys: '/keys',
}
const recordsOf = (orders: Record<string, string>): Pages =>
  Object.fromEntries(Object.entries(orders).map(([name, order]) => [`record-${name}`, `/records/key:${order}`]))
const button = (page: Page, name: string) => page.getByRole('button', { name }).first()
const asked: Pages = {
  preview: ['/records?code=CREDIT_LIMIT', previewReplay],
  discard: [`/records/key:${rejected}`, (page) => openDialog(page, 'Discard…')],
  arrived: [`/records/key:${uncertain}`, (page) => openDialog(page, 'It arrived…')],
  values: [`/records/key:${completed}`, (page) => button(page, 'Show values').click()],
  mapped: ['/mapping', mapPayload],
}
const refused: Pages = {
  records: '/records?since=yesterday',
  record: '/records/SO-1',
  activity: '/audit?since=yesterday',
  mapping: '/mapping?outbox=1000000',
  nothing: '/nothing',
}

if (values.docs) await takeDocs()
else {
  await take('empty', empty, always)
  await take('one', one, { ...always, ...recordsOf({ rejected }) })
  const all = { ...always, ...recordsOf({ rejected, failed, uncertain, completed }) }
  await take('hundreds', hundreds, all)
  await take('asked', hundreds, asked)
  await take('error', hundreds, refused)
  const { program, origin } = await startConsoleOf(hundreds)
  await scenes.killDaemons()
  await fetch(origin)
  await take('gone', hundreds, all, 'No daemon is running')
  await scenes.stopDatabase()
  await lookAt('down', origin, all)
  await program.stop()
}
await browser.close()
for (const finding of findings) process.stdout.write(`${finding}\n`)
if (findings.length > 0) process.exitCode = 1

/** @param words what the Overview says before its picture is taken */
async function take(scene: string, env: Record<string, string>, pages: Pages, words?: string): Promise<void> {
  const { program, origin } = await startConsoleOf(env)
  if (words !== undefined) {
    const page = await browser.newPage()
    await page.goto(origin)
    await page.getByText(words).waitFor()
    await page.close()
  }
  await lookAt(scene, origin, pages)
  await program.stop()
}

async function lookAt(scene: string, origin: string, pages: Pages): Promise<void> {
  for (const [name, wanted] of Object.entries(pages)) {
    const [path, click] = [wanted].flat() as [string, ((page: Page) => Promise<unknown>)?]
    const page = await browser.newPage()
    await page.goto(`${origin}${path}`)
    await click?.(page)
    const found = await readLook(page, (seen) => join(values.to, `${scene}-${name}-${seen}.png`))
    findings.push(...found.map((finding) => `${scene} ${name}: ${finding}`))
    await page.close()
  }
}

/** Takes the pictures of docs/pictures again. */
async function takeDocs(): Promise<void> {
  const { program, origin } = await startConsoleOf(hundreds)
  const open = async (
    path: string,
    size: { width: number; height: number },
    colorScheme: 'light' | 'dark' = 'light',
  ) => {
    const page = await browser.newPage({ viewport: size, colorScheme, reducedMotion: 'reduce' })
    await page.goto(`${origin}${path}`)
    await page.getByText('live', { exact: true }).waitFor()
    return page
  }
  const shoot = async (page: Page, name: string) => {
    findings.push(...(await readOverflow(page)))
    await page.screenshot({ path: join(checkout, 'docs', 'pictures', `${name}.png`), animations: 'disabled' })
    await page.close()
  }
  const desk = { width: 1200, height: 780 }
  await shoot(await open('/', desk), 'overview')
  await shoot(await open('/', desk, 'dark'), 'overview-dark')
  await shoot(await open(`/records/key:${uncertain}`, { ...desk, height: 860 }), 'record-uncertain')
  const list = await open('/records', desk)
  await list.getByRole('button', { name: 'Show values' }).click()
  await list.locator('td.number', { hasText: ',' }).first().waitFor()
  for (const n of [1, 3]) await list.locator('input[name=id]').nth(n).check()
  await shoot(list, 'records')
  const preview = await open('/records?code=CREDIT_LIMIT', desk, 'dark')
  await previewReplay(preview)
  await shoot(preview, 'preview-dark')
  await shoot(await open('/records', { width: 390, height: 844 }), 'phone')
  await program.stop()
}

async function openDialog(page: Page, name: string): Promise<void> {
  await button(page, name).click()
  await page.getByRole('dialog').waitFor()
}

async function previewReplay(page: Page): Promise<void> {
  await page.getByLabel(/Select all/).check()
  await openDialog(page, 'Replay…')
}

async function mapPayload(page: Page): Promise<void> {
  await page.getByLabel('Payload', { exact: true }).fill('{"customerId": "C-7010", "amount": 12.345}')
  await button(page, 'Map').click()
}
