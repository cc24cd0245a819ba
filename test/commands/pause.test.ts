import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { command as pause } from '../../src/commands/pause.ts'
import { command as resume } from '../../src/commands/resume.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { readRequestDemand } from '../../src/ledger/budget.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { openBreaker } from '../support/breaker.ts'
import { claim, claimTrial } from '../support/ledger.ts'
import { openFixtureForFile } from './fixture.ts'

const fixture = openFixtureForFile()

async function run(options: OptionsOf<typeof pause>) {
  const context = fixture.context()
  return { code: await pause.action(context, options), messages: context.messages() }
}

async function runResume(all = false) {
  const context = fixture.context()
  return { code: await resume.action(context, { all }), messages: context.messages() }
}

const pauses = async () => (await readLedgerSnapshot(fixture.ledger.pool)).pauses
const expire = () => fixture.ledger.pool.query(`update outboxd.pause set until = now() - interval '1 s'`)
const unavailable = () => openBreaker(fixture.ledger.pool)

test('a pause stops all sending until resume, and names its reason and operator', async () => {
  await fixture.end({ state: 'queued' })
  expect((await run({ reason: 'year-end\nclosing' })).code).toBe(0)
  expect(await pauses()).toMatchObject([
    { reason: 'operator', untilMs: null, detail: expect.stringMatching(/^year-end closing \(operator .+\)$/) },
  ])
  expect((await claim(fixture.ledger.dispatch(), { submissions: 1 })).submissions).toEqual([])
  const { code, messages } = await runResume()
  expect(code).toBe(0)
  expect(messages).toContain('year-end closing')
  expect((await claim(fixture.ledger.dispatch(), { submissions: 1 })).submissions).toHaveLength(1)
})

test('a second pause replaces the first', async () => {
  await run({ reason: 'first' })
  await run({ reason: 'second', for: '2h' })
  const [only, ...others] = await pauses()
  expect(others).toEqual([])
  expect(only?.detail).toContain('second')
  expect(((only?.untilMs ?? 0) - (only?.sinceMs ?? 0)) / 3_600_000).toBeCloseTo(2, 3)
})

test('a pause over a colleague’s names whose it is, and is refused without a terminal unless --yes is given', async () => {
  await run({ reason: 'year-end closing', as: 'Anna' })
  const asked = await run({ reason: 'restart', as: 'Ben', for: '40s' })
  expect(asked.code).toBe(4)
  expect(asked.messages).toMatch(/^A pause stands since .*until `outboxd resume`: year-end closing \(operator Anna\)\./)
  expect(asked.messages).toContain('add --yes')
  expect((await run({ reason: 'restart', as: 'Ben', for: '40s', dryRun: true })).code).toBe(0)
  expect(await pauses()).toMatchObject([{ untilMs: null, detail: 'year-end closing (operator Anna)' }])
  expect((await run({ reason: 'restart', as: 'Ben', for: '40s', yes: true })).code).toBe(0)
  expect(await pauses()).toMatchObject([{ untilMs: expect.any(Number), detail: 'restart (operator Ben)' }])
})

test('on a terminal, a pause over a colleague’s asks', async () => {
  for (const [answer, detail] of [
    ['n', 'closing (operator Anna)'],
    ['y', 'restart (operator Ben)'],
  ] as const) {
    await run({ reason: 'closing', as: 'Anna', yes: true })
    const context = fixture.context(`${answer}\n`)
    await pause.action(context, { reason: 'restart', as: 'Ben' })
    expect(context.messages()).toContain('Replace it? [y/N]')
    expect(await pauses()).toMatchObject([{ detail }])
  }
})

test('a pause with an end ends without a trial request, and is not shown any more', async () => {
  await fixture.end({ state: 'queued' })
  await run({ reason: 'short', for: '1h' })
  await expire()
  expect(await pauses()).toEqual([])
  expect((await readRequestDemand(fixture.ledger.pool, 10)).pauses).toEqual([])
  expect((await claim(fixture.ledger.dispatch(), { submissions: 1 })).submissions).toHaveLength(1)
})

test('resume after the end of a pause says that nothing was paused', async () => {
  await run({ reason: 'short', for: '1h' })
  await expire()
  expect(await runResume()).toEqual({ code: 0, messages: expect.stringMatching(/^Nothing was paused\.\n/) })
  expect((await fixture.ledger.pool.query('select from outboxd.pause')).rowCount).toBe(0)
})

test('control characters from the reason and from the service do not reach the terminal', async () => {
  await run({ reason: 'a\u001b[31mred' })
  await openBreaker(fixture.ledger.pool, { detail: 'no\u001b]0;title' })
  const { messages } = await runResume()
  expect(messages).toContain('a\\u001b[31mred')
  expect(messages).toContain('no\\u001b]0;title')
  expect(messages).not.toContain('\u001b')
})

test('resume says which pauses remain', async () => {
  await unavailable()
  await run({ reason: 'x' })
  const { code, messages } = await runResume()
  expect(code).toBe(0)
  expect(messages).toContain('Still paused (unavailable)')
  expect(messages).toContain('--all')
  expect((await runResume()).messages).toContain('There is no operator’s pause to end.')
})

test('resume --all lets a trial request go now', async () => {
  await fixture.end({ state: 'queued' })
  await fixture.end({ state: 'queued' })
  await unavailable()
  const work = fixture.ledger.dispatch()
  expect((await claimTrial(work)).submissions).toEqual([])
  expect((await runResume(true)).messages).toContain(
    'Ending the pause (unavailable): E003\nOne request goes first. If this request succeeds, all sending resumes. `outboxd status` shows it.\n',
  )
  expect((await claimTrial(work)).submissions).toHaveLength(1)
  expect((await claimTrial(work)).submissions).toEqual([])
})

test('a breaker that waits for a person is tried only after resume --all', async () => {
  await fixture.end({ state: 'queued' })
  await openBreaker(fixture.ledger.pool, { cause: 'unreachable', forMs: null, detail: 'no answer' })
  const work = fixture.ledger.dispatch()
  expect((await runResume()).messages).toContain('Still paused (unreachable) until `outboxd resume --all`: no answer')
  expect((await claimTrial(work)).submissions).toEqual([])
  expect((await runResume(true)).messages).toContain('Ending the pause (unreachable)')
  expect((await claimTrial(work)).submissions).toHaveLength(1)
})

test('pause and resume say how many daemons the database has, and warn if there is none', async () => {
  for (const act of [() => run({ reason: 'a look' }), () => runResume()])
    expect((await act()).messages).toContain('Warning: no daemon runs with this database, so this reaches none.')
  await writeHeartbeat(fixture.ledger.pool, { id: randomUUID(), version: 'test', host: 'erp-1', settings: {} })
  for (const act of [() => run({ reason: 'a look' }), () => runResume()])
    expect((await act()).messages).toContain('1 daemon of this database follows within a second.')
})

test('resume without a pause exits with 0', async () => {
  expect(await runResume()).toEqual({ code: 0, messages: expect.stringMatching(/^Nothing was paused\.\n/) })
})

test.each([
  { reason: ' ' },
  { reason: 'x', for: '2' },
  { reason: 'x', for: '0s' },
  { reason: 'x', for: '60w' },
])('%j exits with 2 and pauses nothing', async (options) => {
  expect((await run(options)).code).toBe(2)
  expect(await pauses()).toEqual([])
})

test('--dry-run shows as JSON what pause and resume would do, and changes nothing', async () => {
  const foreseen = fixture.context()
  expect(await pause.action(foreseen, { reason: 'x', for: '2h', dryRun: true, json: true })).toBe(0)
  expect(JSON.parse(foreseen.printed())).toMatchObject({ dryRun: true, until: expect.stringMatching(/^20.*Z$/) })
  expect(await pauses()).toEqual([])

  await unavailable()
  await run({ reason: 'closing' })
  const resumption = async (options: OptionsOf<typeof resume>) => {
    const context = fixture.context()
    expect(await resume.action(context, { ...options, json: true })).toBe(0)
    return JSON.parse(context.printed())
  }
  const both = {
    ended: expect.stringContaining('closing'),
    remaining: [{ reason: 'unavailable', until: expect.any(String), detail: 'E003', isTriedNow: true }],
  }
  expect(await resumption({ all: true, dryRun: true })).toEqual({ dryRun: true, ...both })
  expect(await pauses()).toHaveLength(2)
  expect(await resumption({ all: true })).toEqual({ dryRun: false, ...both })
  expect(await pauses()).toHaveLength(1)
})
