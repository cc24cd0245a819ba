import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type PauseOptions, pause } from '../../src/commands/pause.ts'
import { resume } from '../../src/commands/resume.ts'
import { readDemand } from '../../src/store/ledger/demand.ts'
import { readSnapshot } from '../../src/store/snapshot.ts'
import { claim, settlement } from '../support/ledger.ts'
import { openScene, type Scene } from './scene.ts'

let scene: Scene
beforeAll(async () => {
  scene = await openScene()
})
afterAll(() => scene[Symbol.asyncDispose]())
beforeEach(() => scene.reset())

async function run(options: PauseOptions) {
  const context = scene.context()
  return { code: await pause(context, options), said: context.said() }
}

async function runResume(all = false) {
  const context = scene.context()
  return { code: await resume(context, { all }), said: context.said() }
}

const pauses = async () => (await readSnapshot(scene.ledger.pool)).pauses
const expire = () => scene.ledger.pool.query(`update outboxd.pause set until = now() - interval '1 s'`)
const unavailable = () =>
  scene.ledger.pool.query(
    `insert into outboxd.pause values ('unavailable', now(), now() + interval '4 min', 0, 'E003')`,
  )

test('a pause holds everyone until it is resumed, and says why and who', async () => {
  await scene.end({ state: 'queued' })
  expect((await run({ reason: 'year-end\nclosing' })).code).toBe(0)
  expect(await pauses()).toMatchObject([
    { reason: 'operator', untilMs: null, detail: expect.stringMatching(/^year-end closing \(operator .+\)$/) },
  ])
  expect((await claim(scene.ledger.work(), { submissions: 1 })).submissions).toEqual([])
  const { code, said } = await runResume()
  expect(code).toBe(0)
  expect(said).toContain('year-end closing')
  expect((await claim(scene.ledger.work(), { submissions: 1 })).submissions).toHaveLength(1)
})

test('a second pause replaces the first', async () => {
  await run({ reason: 'first' })
  await run({ reason: 'second', for: '2h' })
  const [only, ...others] = await pauses()
  expect(others).toEqual([])
  expect(only?.detail).toContain('second')
  expect(((only?.untilMs ?? 0) - (only?.sinceMs ?? 0)) / 3_600_000).toBeCloseTo(2, 3)
})

test('a pause with an end is over by itself: no request has to feel the way, and nothing shows it any more', async () => {
  await scene.end({ state: 'queued' })
  await run({ reason: 'short', for: '1h' })
  await expire()
  expect(await pauses()).toEqual([])
  expect((await readDemand(scene.ledger.pool, 10)).pauses).toEqual([])
  const work = scene.ledger.work()
  expect((await claim(work, { submissions: 1 })).submissions).toHaveLength(1)
  await work.settle(settlement({ wayIsClear: true, probeOver: true }))
  expect((await scene.ledger.pool.query('select from outboxd.pause')).rowCount).toBe(0)
})

test('resume says which pauses remain', async () => {
  await unavailable()
  await run({ reason: 'x' })
  const { code, said } = await runResume()
  expect(code).toBe(0)
  expect(said).toContain('Still paused (unavailable)')
  expect(said).toContain('--all')
  expect((await runResume()).said).toContain('No operator had paused.')
})

test('resume --all lets one request feel the way now', async () => {
  await scene.end({ state: 'queued' })
  await scene.end({ state: 'queued' })
  await unavailable()
  const work = scene.ledger.work()
  expect((await claim(work, { submissions: 1, probe: true })).submissions).toEqual([])
  expect((await runResume(true)).said).toContain('until the next request')
  expect((await claim(work, { submissions: 1, probe: true })).submissions).toHaveLength(1)
  expect((await claim(work, { submissions: 1, probe: true })).submissions).toEqual([])
})

test('resuming what was not paused is no mistake', async () => {
  expect(await runResume()).toEqual({ code: 0, said: 'No pause was on.\n' })
})

test.each([
  { reason: ' ' },
  { reason: 'x', for: '2' },
  { reason: 'x', for: '0s' },
  { reason: 'x', for: '60w' },
])('%j leaves with 2 and pauses nothing', async (options) => {
  expect((await run(options)).code).toBe(2)
  expect(await pauses()).toEqual([])
})
