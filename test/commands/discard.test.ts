import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type DiscardOptions, discard } from '../../src/commands/discard.ts'
import { failedE003, openScene, type Scene, uncertain } from './scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await openScene()
})
afterAll(() => scene[Symbol.asyncDispose]())
beforeEach(() => scene.reset())

async function run(ids: string[], options: DiscardOptions, env: Record<string, string> = {}) {
  const context = scene.context(null, env)
  const code = await discard(context, ids, options)
  return { code, printed: context.printed(), said: context.said() }
}

const reason = 'entered twice'

test('one is given up without being asked about, with the reason in the log and the error kept', async () => {
  const id = await scene.end(failedE003)
  expect((await run([id], { reason })).code).toBe(0)
  expect(await scene.ledger.row(id)).toMatchObject({ state: 'discarded', error_code: 'E003', report_due: true })
  expect((await scene.ledger.events(id)).at(-1)).toBe('failed -> discarded: discarded: entered twice')
})

test('the next of its key goes on', async () => {
  const first = await scene.end(uncertain, { key: 'k' })
  const second = await scene.end({ state: 'queued' }, { key: 'k' })
  await run([first], { reason })
  expect((await scene.ledger.row(second)).held).toBe(false)
})

test('with KEY_ON_FAILURE=block a failed one lets the next go, too', async () => {
  const first = await scene.end(failedE003, { key: 'k' })
  const [second = ''] = await scene.ledger.capture([{ key: 'k' }], 'block')
  expect((await scene.ledger.row(second)).held).toBe(true)
  await run([first], { reason }, { KEY_ON_FAILURE: 'block' })
  expect((await scene.ledger.row(second)).held).toBe(false)
})

test('in bulk it needs --yes where there is no terminal', async () => {
  await scene.end(failedE003, { type: 'order' })
  await scene.end(uncertain)
  const asked = await run([], { reason, state: 'failed,uncertain' })
  expect(asked.code).toBe(4)
  expect(asked.said).toContain('This would discard 2 records')
  expect((await run([], { reason, type: 'order', yes: true })).code).toBe(0)
  expect(await scene.ledger.countStates()).toEqual({ discarded: 1, uncertain: 1 })
})

test('--dry-run shows and changes nothing', async () => {
  await scene.end(failedE003)
  const { code, printed } = await run([], { reason, state: 'failed', dryRun: true })
  expect(code).toBe(0)
  expect(printed).toContain('This would discard 1 record')
  expect(await scene.ledger.countStates()).toEqual({ failed: 1 })
})

test('what is on its way or has arrived is left alone', async () => {
  const id = await scene.end({ state: 'accepted', pollInMs: 0, transactionId: 't' })
  const { code, said } = await run([id], { reason })
  expect(code).toBe(1)
  expect(said).toContain('it is on its way')
  expect((await scene.ledger.row(id)).state).toBe('accepted')
})

test.each([
  [[], { reason }, 'say which'],
  [['outbox:1'], { reason: ' ' }, '--reason must say why'],
  [[], { reason, state: 'queued' }, 'only failed, rejected and uncertain'],
])('%j %j leaves with 2', async (ids, options, words) => {
  const { code, said } = await run(ids, options)
  expect(code).toBe(2)
  expect(said).toContain(words)
})

test('nothing that matches leaves with 3', async () => {
  expect((await run([], { reason, state: 'failed', yes: true })).code).toBe(3)
})
