import { expect, test } from 'vitest'
import { command as replay } from '../../src/commands/replay.ts'
import { command as resolve } from '../../src/commands/resolve.ts'
import { command as show } from '../../src/commands/show.ts'
import type { OptionsOf } from '../../src/commands/terminal/command.ts'
import { toTrackStep } from '../../src/daemon/decideTrack.ts'
import { openFixtureForFile, uncertain } from '../commands/fixture.ts'
import { claim, outcomeBatch, transition } from '../support/ledger.ts'

/** An operator gave a wrong id, and the service has finished that transaction before the mistake was noticed. */
const fixture = openFixtureForFile()

async function run(name: string, options: OptionsOf<typeof resolve>, input: string | null = null) {
  const context = fixture.context(input)
  const code = await resolve.action(context, name, options)
  return { code, messages: context.messages() }
}

const word = (arrived: string): OptionsOf<typeof resolve> => ({ arrived, unchecked: true, yes: true })

/** An uncertain record that an operator resolved as this transaction, which the service has ended with `verdict`. */
async function mistaken(outboxId: string, transactionId: string, verdict: 'completed' | 'failed'): Promise<string> {
  const id = await fixture.end(uncertain, { outboxId })
  expect((await run(id, word(transactionId))).code).toBe(0)
  const work = fixture.ledger.dispatch()
  const { polls } = await claim(work, { polls: 1 })
  const [poll] = polls
  if (poll === undefined) throw new Error('its poll did not come')
  const now = {
    nextPollDelayMs: 1_000,
    freshKey: '00000000-0000-7000-8000-0000000000ff',
    ageAskedMs: 5,
    ageAnsweredMs: 6,
  }
  const messages =
    verdict === 'completed'
      ? ({ kind: 'completed', result: '{"paid":1.10}' } as const)
      : ({ kind: 'failed', code: 'E001', reason: 'no' } as const)
  const { change } = toTrackStep(poll.submission, messages, now)
  await work.writeOutcomes(outcomeBatch({ transitions: [transition(poll.submission, change, poll.poll)] }))
  expect(await fixture.ledger.row(id)).toMatchObject({ state: verdict, id_by_person: true })
  return id
}

test("two records have each other's ids: both can be corrected", async () => {
  const first = await mistaken('1', 'tx-2', 'completed')
  const second = await mistaken('2', 'tx-1', 'completed')

  const blocked = await run('outbox:1', word('tx-1'))
  expect(blocked.code).toBe(1)
  expect(blocked.messages).toContain('outboxd resolve outbox:2 --arrived ITS_ID`, or --take-back')

  expect((await run('outbox:2', { takeBack: true })).code).toBe(4)
  expect((await run('outbox:2', { takeBack: true, yes: true })).messages).toContain(
    'outbox:2 is uncertain again, and tx-1',
  )
  expect(await fixture.ledger.row(second)).toMatchObject({ state: 'uncertain', transaction_id: null, result: null })
  expect((await fixture.ledger.events(second)).at(-1)).toBe(
    'completed -> uncertain: resolved: taken back that it is tx-1',
  )

  expect((await run('outbox:1', word('tx-1'))).code).toBe(0)
  expect((await run('outbox:2', word('tx-2'))).code).toBe(0)
  expect(await fixture.ledger.row(first)).toMatchObject({ state: 'accepted', transaction_id: 'tx-1', result: null })
  expect(await fixture.ledger.row(second)).toMatchObject({ state: 'accepted', transaction_id: 'tx-2' })
})

test('a record that failed under a wrong id may have arrived: a bulk replay skips it, and it can be corrected', async () => {
  const id = await mistaken('1', 'tx-2', 'failed')
  expect(await fixture.ledger.row(id)).toMatchObject({ may_have_arrived: true, in_doubt: true })
  await replay.action(fixture.context(), [], { state: 'failed', yes: true })
  expect((await fixture.ledger.row(id)).state).toBe('failed')
  expect((await run(id, word('tx-1'))).code).toBe(0)
  expect(await fixture.ledger.row(id)).toMatchObject({ state: 'accepted', transaction_id: 'tx-1' })
})

test('show says that an operator gave the id, and how to correct it', async () => {
  const id = await mistaken('1', 'tx-2', 'completed')
  const context = fixture.context()
  await show.action(context, id, {})
  expect(context.printed()).toContain('tx-2 (given by an operator)')
  expect(context.printed()).toContain(`outboxd resolve ${id} --arrived OTHER_ID`)
  expect(context.printed()).toContain(`outboxd resolve ${id} --take-back`)
})

test('--take-back is refused if no operator gave the id', async () => {
  const id = await fixture.end({ state: 'completed', transactionId: 'tx-1' })
  const { code, messages } = await run(id, { takeBack: true, yes: true })
  expect(code).toBe(1)
  expect(messages).toContain('no operator gave its transaction id')
})

test('a record completed under a wrong id can be sent again under its key, with an attempt in doubt', async () => {
  const id = await mistaken('1', 'tx-2', 'completed')
  const { idempotency_key } = await fixture.ledger.row(id)
  expect((await run(id, { notArrived: true })).code).toBe(4)
  expect((await run(id, { notArrived: true, yes: true })).code).toBe(0)
  expect(await fixture.ledger.row(id)).toMatchObject({ state: 'queued', in_doubt: true, idempotency_key, result: null })
})
