import { expect, test } from 'vitest'
import { command as adopt } from '../../src/commands/adopt.ts'
import { command as discard } from '../../src/commands/discard.ts'
import { command as pause } from '../../src/commands/pause.ts'
import { command as prune } from '../../src/commands/prune.ts'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import { command as resume } from '../../src/commands/resume.ts'
import { failedE003, openFixtureForFile, uncertain } from '../commands/fixture.ts'
import { openBreaker } from '../support/breaker.ts'
import type { TestContext } from '../support/context.ts'
import { setSettings } from '../support/ledger.ts'
import { serviceEnvironment } from '../support/serviceEnvironment.ts'

/** The logs keep who made each change and why. */

const fixture = openFixtureForFile()

const given = { as: 'alice', reason: 'ticket 231' }

async function lastEvent(id: string) {
  const { rows } = await fixture.ledger.pool.query(
    'select who, detail from outboxd.submission_event where submission_id = $1 order by id desc limit 1',
    [id],
  )
  return rows[0]
}

/** The acts of a person of that name. */
async function acts(name: string) {
  const { rows } = await fixture.ledger.pool.query(
    'select act, who, reason, account, until, detail from outboxd.operator_act where who = $1 order by id',
    [`operator ${name}`],
  )
  return rows
}

const byAlice = { who: 'operator alice', detail: { reason: 'ticket 231', account: expect.stringMatching(/.@./) } }

test.each([
  ['replay', failedE003, (context: TestContext, id: string) => replay.action(context, [id], given)],
  ['discard', failedE003, (context: TestContext, id: string) => discard.action(context, [id], given)],
  [
    'resolve',
    uncertain,
    (context: TestContext, id: string) => resolve.action(context, id, { ...given, notArrived: true, yes: true }),
  ],
  [
    'resolve --take-back',
    uncertain,
    async (context: TestContext, id: string) => {
      await resolve.action(context, id, { arrived: 'tx-9', unchecked: true, yes: true })
      return resolve.action(context, id, { ...given, takeBack: true })
    },
  ],
])('%s logs the name, the reason and the account', async (_, change, act) => {
  const id = await fixture.end(change)
  expect(await act(fixture.context(), id)).toBe(0)
  expect(await lastEvent(id)).toMatchObject(byAlice)
})

test('without --as, the log names the user who called sudo, and without --reason no reason', async () => {
  const id = await fixture.end(failedE003)
  await replay.action(fixture.context(null, { SUDO_USER: 'bob' }), [id], {})
  expect(await lastEvent(id)).toMatchObject({ who: 'operator bob' })
  expect((await lastEvent(id)).detail).not.toHaveProperty('reason')
})

test('a pause and its end are logged with name, reason and end time, and a resume without a pause is not', async () => {
  await pause.action(fixture.context(), { as: 'carol', reason: 'year-end closing', for: '2h' })
  await resume.action(fixture.context(), { as: 'carol', reason: 'books are closed' })
  await resume.action(fixture.context(), { as: 'carol', reason: 'again' }) // none was on
  const [paused, resumed, ...others] = await acts('carol')
  expect(paused).toMatchObject({ act: 'pause', reason: 'year-end closing', until: expect.any(Date) })
  expect(resumed).toMatchObject({
    act: 'resume',
    reason: 'books are closed',
    detail: { ended: 'year-end closing (operator carol)' },
  })
  expect(others).toEqual([])
})

test('resume --all, adopt and prune are logged with name and reason', async () => {
  const id = await fixture.end({ state: 'rejected' })
  await discard.action(fixture.context(), [id], given)
  await openBreaker(fixture.ledger.pool)
  const dave = { as: 'dave', reason: 'ticket 5' }
  await resume.action(fixture.context(), { ...dave, all: true })
  await adopt.action(fixture.context(null, serviceEnvironment('https://test.example')), {
    ...dave,
    same: true,
    yes: true,
  })
  await fixture.ledger.pool.query(
    `update outboxd.submission set report_due = false, ended_at = now() - interval '100 days'`,
  )
  await setSettings(fixture.ledger.pool, { RETENTION_DAYS: '90', RETENTION_PAYLOAD_DAYS: '30' })
  await prune.action(fixture.context(), dave)
  expect(await acts('dave')).toMatchObject([
    { act: 'resume --all', reason: 'ticket 5', detail: { pauses: ['unavailable'] } },
    { act: 'adopt', reason: 'ticket 5', detail: { outbox: expect.stringContaining('outbox with ids') } },
    { act: 'prune', reason: 'ticket 5', detail: { days: 90 } },
  ])
})

test.each([
  [{ as: ' ' }, '--as needs a name'],
  [{ as: 'x\ny' }, '--as needs a name'],
  [{ as: 'x'.repeat(101) }, '--as needs a name'],
  [{ reason: ' ' }, '--reason must not be empty'],
  [{ reason: 'x'.repeat(1_001) }, '--reason is longer'],
])('%j is refused and changes nothing', async (options, message) => {
  const id = await fixture.end(failedE003)
  const context = fixture.context()
  expect(await replay.action(context, [id], options)).toBe(2)
  expect(context.messages()).toContain(message)
  expect(await fixture.ledger.countStates()).toEqual({ failed: 1 })
})
