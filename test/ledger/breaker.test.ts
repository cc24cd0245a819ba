import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { applyAnswers, makeTrialDue } from '../../src/ledger/breaker.ts'
import { readRequestDemand } from '../../src/ledger/budget.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import type { BreakerAnswer, BreakerSign, Claim } from '../../src/model/dispatch.ts'
import { breakerAnswer, fails, openBreaker } from '../support/breaker.ts'
import {
  claim,
  claimTrial,
  openLedgerForFile,
  outcomeBatch,
  pauseBackoff,
  setLimit,
  setSettings,
  type TestDispatch,
  transition,
} from '../support/ledger.ts'

const ledger = openLedgerForFile()
let dispatch: TestDispatch
beforeAll(async () => {
  dispatch = ledger.dispatch()
})
beforeEach(() => setLimit(ledger.pool))

const works: BreakerSign = { kind: 'works' }
const refused = fails('unavailable', { isOfSubmission: true })
const silent = fails('unreachable', { isOfSubmission: true, isInDoubt: true })
const operator = () => ({ ledger: ledger.pool, actor: { who: 'test', reason: null, account: 'test@test' } })

const say = (...answers: BreakerAnswer[]) => dispatch.writeOutcomes(outcomeBatch({ answers }))
const breaker = async () => (await ledger.pool.query(`select * from outboxd.pause where reason = 'breaker'`)).rows[0]
/** Lets the pause, and the deadline of its trial, pass. */
const pass = () =>
  ledger.pool.query(
    `update outboxd.pause set until = clock_timestamp(),
       trial_until = case when trial is not null then clock_timestamp() end where reason = 'breaker'`,
  )
const passDueTimes = () =>
  ledger.pool.query(`update outboxd.submission set due_at = clock_timestamp() where state = 'queued'`)

/** Names what a trial was claimed for, such as `poll a`; records have the ids of their outbox rows. */
function nameOf({ submissions, polls, question }: Claim): string {
  const parts = [
    ...submissions.map(({ outboxId }) => `submission ${outboxId}`),
    ...polls.map(({ submission }) => `poll ${submission.outboxId}`),
    ...(question === null ? [] : [`question ${question.transactionId}`]),
  ]
  return parts.join() || 'nothing'
}
const trialOf = ({ submissions, polls, question }: Claim): string =>
  submissions[0]?.requestId ?? polls[0]?.poll.requestId ?? question?.requestId ?? ''

/** Captures a record and sends it. @returns its id */
async function accepted(outboxId: string, { pollInMs = 0, done = false } = {}): Promise<string> {
  const [id = ''] = await ledger.capture([{ outboxId }])
  const { submissions } = await claim(dispatch, { submissions: 1 })
  const transactionId = `tx-${outboxId}`
  for (const each of submissions)
    await dispatch.writeOutcomes(
      outcomeBatch({
        transitions: [
          transition(
            each,
            done ? { state: 'completed', transactionId } : { state: 'accepted', transactionId, pollInMs },
          ),
        ],
      }),
    )
  return id
}

describe('a trial by a submission whose daemon dies', () => {
  test('counts as a doubt, and after three the next submission waits for a person', async () => {
    await ledger.capture([{ outboxId: 'a' }, { outboxId: 'b' }, { outboxId: 'c' }, { outboxId: 'd' }])
    await say(breakerAnswer('submission', '1', silent, randomUUID()))
    for (const [nth, outboxId] of ['a', 'b', 'c'].entries()) {
      await pass()
      expect(nameOf(await claimTrial(dispatch))).toBe(`submission ${outboxId}`)
      await pass() // without an answer
      expect(nameOf(await claimTrial(dispatch))).toBe('nothing')
      expect(await breaker()).toMatchObject({ state: 'open', doubts: nth + 1, trial: null })
    }
    const { until, detail } = await breaker()
    expect([until, detail]).toEqual([null, expect.stringContaining('outboxd resume --all')])
    expect(nameOf(await claimTrial(dispatch))).toBe('nothing')
    await makeTrialDue(operator())
    expect(nameOf(await claimTrial(dispatch))).toBe('submission d')
  })

  test('is no doubt if UNCERTAIN_POLICY sends the record again by itself, and names the former cause', async () => {
    await setSettings(ledger.pool, { UNCERTAIN_POLICY: 'resend' })
    await ledger.capture([{ outboxId: 'a' }])
    await say(breakerAnswer('submission', '1', refused, randomUUID()))
    await pass()
    await claimTrial(dispatch)
    await pass()
    await claimTrial(dispatch)
    expect(await breaker()).toMatchObject({ state: 'open', cause: 'unavailable', doubts: 0, level: 1 })
  })

  test('changes nothing if its answer comes after all', async () => {
    await ledger.capture([{ outboxId: 'a' }])
    await say(breakerAnswer('submission', '1', silent, randomUUID()))
    await pass()
    const trial = trialOf(await claimTrial(dispatch))
    await pass()
    await claimTrial(dispatch)
    const before = await breaker()
    await say(breakerAnswer('submission', trial, works))
    expect(await breaker()).toEqual(before)
  })

  test('by a poll counts none: the next trial begins at its deadline', async () => {
    await accepted('a')
    await accepted('b')
    await say(breakerAnswer('submission', '1', silent, randomUUID()))
    await pass()
    expect(nameOf(await claimTrial(dispatch))).toMatch(/^poll/)
    await pass()
    expect(nameOf(await claimTrial(dispatch))).toMatch(/^poll/)
    expect(await breaker()).toMatchObject({ doubts: 0, level: 0 })
  })
})

describe('an answer that fails', () => {
  test('opens the breaker for all, once, whatever else was on the wire', async () => {
    await say(breakerAnswer('submission', '1', refused, randomUUID()))
    const first = await breaker()
    expect(first).toMatchObject({ state: 'open', cause: 'unavailable', level: 0, is_of_submission: true, doubts: 0 })
    expect(first.until - first.since).toBeGreaterThan(299_000)
    await say(breakerAnswer('poll', '2', fails('unauthorized')), breakerAnswer('submission', '3', works))
    expect(await breaker()).toEqual(first)
    expect((await readLedgerSnapshot(ledger.pool)).pauses).toMatchObject([{ reason: 'unavailable' }])
  })

  test('to the trial opens it again, with the next step of the backoff', async () => {
    await say(breakerAnswer('token', null, fails('unreachable')))
    const lengths: number[] = []
    for (let i = 0; i < 4; i++) {
      const { until, set_at } = await breaker()
      lengths.push(Math.round((until - set_at) / 1_000))
      await pass()
      // Its token is refused.
      await say(breakerAnswer('token', null, fails('unreachable')))
    }
    expect(lengths).toEqual([1, 2, 4, 4])
  })

  test('is written with its record’s step, or not at all', async () => {
    const [id = ''] = await ledger.capture([{}])
    const [sent] = (await claim(dispatch, { submissions: 1 })).submissions
    if (sent === undefined) throw new Error('nothing was claimed')
    const answers = [breakerAnswer('submission', sent.requestId, refused, id)]
    const bad = transition(sent, { state: 'accepted', pollInMs: 0 }) // without an id
    await expect(dispatch.writeOutcomes(outcomeBatch({ answers, transitions: [bad] }))).rejects.toThrow('check')
    expect(await breaker()).toBeUndefined()
  })
})

describe('the trial', () => {
  test('is one of all instances', async () => {
    await ledger.capture([{}, {}, {}])
    await openBreaker(ledger.pool, { forMs: -1 })
    const claims = await Promise.all([1, 2, 3].map(() => claimTrial(ledger.dispatch())))
    expect(claims.map(({ submissions }) => submissions.length).sort()).toEqual([0, 0, 1])
    expect(await breaker()).toMatchObject({ state: 'half_open' })
    // Until the request's own deadline.
    expect((await readRequestDemand(ledger.pool, 10)).breaker?.leftMs).toSatisfy((ms: number) => ms > 0 && ms <= 33_000)
  })

  test('that never left is given back at once', async () => {
    await ledger.capture([{}, {}])
    await openBreaker(ledger.pool, { forMs: -1 })
    await say(breakerAnswer('submission', trialOf(await claimTrial(dispatch)), { kind: 'unknown' }))
    expect((await claimTrial(dispatch)).submissions).toHaveLength(1)
  })

  test('that works lets all go', async () => {
    await ledger.capture([{}, {}, {}])
    await openBreaker(ledger.pool, { forMs: -1 })
    await say(breakerAnswer('submission', trialOf(await claimTrial(dispatch)), works))
    expect(await breaker()).toMatchObject({ state: 'closed', cause: null, until: null, level: 0 })
    expect((await readLedgerSnapshot(ledger.pool)).pauses).toEqual([])
    expect((await claim(dispatch, { submissions: 9 })).submissions).toHaveLength(2)
  })

  test('waits while an operator’s pause stands, or no request is free', async () => {
    await ledger.capture([{ outboxId: 'a' }])
    await openBreaker(ledger.pool, { forMs: -1 })
    await ledger.pool.query(`insert into outboxd.pause (reason, detail) values ('operator', 'x')`)
    expect(nameOf(await claimTrial(dispatch))).toBe('nothing')
    await ledger.pool.query(`delete from outboxd.pause where reason = 'operator'`)
    await setLimit(ledger.pool, 1)
    expect(nameOf(await claimTrial(dispatch))).toBe('submission a')
    await pass()
    expect(nameOf(await claimTrial(dispatch))).toBe('nothing')
  })

  test('a GET that works is followed by one submission, if a submission opened the breaker', async () => {
    await accepted('a')
    await accepted('b')
    await say(breakerAnswer('submission', '1', silent, randomUUID()))
    await pass()
    const poll = await claimTrial(dispatch)
    expect(nameOf(poll)).toMatch(/^poll [ab]$/)
    await say(breakerAnswer('poll', trialOf(poll), works))
    expect((await readRequestDemand(ledger.pool, 10)).breaker).toMatchObject({ hasGetWorked: true })
    // No record waits, so no pause is shown, and polls go on.
    expect((await readLedgerSnapshot(ledger.pool)).pauses).toEqual([])
    expect(nameOf(await claimTrial(dispatch))).toBe('nothing')
    expect((await claim(dispatch, { submissions: 9, polls: 9 })).polls).toHaveLength(1)
    await ledger.capture([{ outboxId: 'c' }])
    expect((await claim(dispatch, { submissions: 9 })).submissions).toEqual([])
    const post = await claimTrial(dispatch)
    expect(nameOf(post)).toBe('submission c')
    await say(breakerAnswer('submission', trialOf(post), works))
    expect(await breaker()).toMatchObject({ state: 'closed' })
  })

  test('after three in doubt a person has to act', async () => {
    await ledger.capture([{}, {}, {}, {}])
    await say(breakerAnswer('submission', '1', silent, randomUUID()))
    for (const doubts of [1, 2, 3]) {
      await pass()
      await say(breakerAnswer('submission', trialOf(await claimTrial(dispatch)), silent))
      expect(await breaker()).toMatchObject({ state: 'open', doubts })
    }
    expect(await breaker()).toMatchObject({ until: null })
    expect(nameOf(await claimTrial(dispatch))).toBe('nothing')
    expect(await makeTrialDue(operator())).toBe('unreachable')
    expect(nameOf(await claimTrial(dispatch))).toMatch(/submission/)
  })
})

describe('what is tried:', () => {
  async function opened(by: string | null, given: { isOfSubmission?: boolean; isInDoubt?: boolean } = {}) {
    await applyAnswers(ledger.pool, [breakerAnswer('submission', '1', fails('unavailable', given), by)], pauseBackoff)
    await pass()
    return nameOf(await claimTrial(dispatch))
  }
  const posts = { isOfSubmission: true }

  test('a due poll', async () => {
    await accepted('a')
    await ledger.capture([{ outboxId: 'b' }])
    expect(await opened(null)).toBe('poll a')
    expect(await ledger.polled()).toHaveLength(1)
  })

  test('a due poll of a record that did not open it; the other poll stays due', async () => {
    const ids = [await accepted('a'), await accepted('b')]
    expect(await opened(ids[0] ?? '')).toBe('poll b')
    expect((await readRequestDemand(ledger.pool, 10)).pollsDue).toBe(1)
  })

  test('a submission rather than the poll that opened it', async () => {
    const id = await accepted('a')
    await ledger.capture([{ outboxId: 'b' }])
    expect(await opened(id)).toBe('submission b')
  })

  test('the poll that opened it if nothing else is due', async () => {
    expect(await opened(await accepted('a'))).toBe('poll a')
  })

  test('a submission that did not open it, if possible of the other resource', async () => {
    const [first = ''] = await ledger.capture([
      { outboxId: 'a' },
      { outboxId: 'b' },
      { outboxId: 'c', resource: 'orders' },
      { outboxId: 'd' },
    ])
    expect(await opened(first, posts)).toBe('submission c')
  })

  test('a transaction that the service knows, if submissions end in doubt', async () => {
    await accepted('a', { done: true })
    await ledger.capture([{ outboxId: 'b' }])
    expect(await opened(null, { ...posts, isInDoubt: true })).toBe('question tx-a')
  })

  test('the same, if only the submission that opened it is due', async () => {
    await accepted('a', { done: true })
    const [id = ''] = await ledger.capture([{ outboxId: 'b' }])
    expect(await opened(id, posts)).toBe('question tx-a')
  })

  test('a submission, if the service accepted none yet', async () => {
    const [id = ''] = await ledger.capture([{ outboxId: 'b' }])
    expect(await opened(id, { ...posts, isInDoubt: true })).toBe('submission b')
  })

  test('a transaction that the service knows, if nothing is due, so that the pause ends', async () => {
    await accepted('a', { pollInMs: 60_000 })
    expect(await opened(null)).toBe('question tx-a')
  })

  test('after a trial by a poll failed, a submission, because polls may alone be the cause; then a poll again', async () => {
    await accepted('a')
    await accepted('b')
    await ledger.capture([{ outboxId: 'c' }])
    expect(await opened(null)).toMatch(/^poll/)
    const { trial } = await breaker()
    await say(breakerAnswer('poll', trial, fails('unauthorized', { isForbiddenGet: true })))
    await pass()
    const post = await claimTrial(dispatch)
    expect(nameOf(post)).toBe('submission c')
    await say(breakerAnswer('submission', trialOf(post), fails('unavailable')))
    await pass()
    expect(nameOf(await claimTrial(dispatch))).toMatch(/^poll/)
  })

  test('after a poll failed and submissions ended in doubt, a transaction that the service knows', async () => {
    await accepted('a', { done: true })
    await accepted('b')
    await ledger.capture([{ outboxId: 'c' }])
    expect(await opened(null, { ...posts, isInDoubt: true })).toBe('poll b')
    const { trial } = await breaker()
    await say(breakerAnswer('poll', trial, fails('unavailable')))
    await pass()
    expect(nameOf(await claimTrial(dispatch))).toBe('question tx-a')
  })

  test('a submission at `resume --all`, although a poll is due and GETs never work', async () => {
    await accepted('a')
    await ledger.capture([{ outboxId: 'b' }])
    expect(await opened(null, { ...posts, isInDoubt: true })).toBe('poll a')
    const { trial } = await breaker()
    await say(breakerAnswer('poll', trial, fails('unreachable')))
    await makeTrialDue(operator())
    const post = await claimTrial(dispatch)
    expect(nameOf(post)).toBe('submission b')
    await say(breakerAnswer('submission', trialOf(post), works))
    expect(await breaker()).toMatchObject({ state: 'closed' })
  })

  test('nothing, if the ledger is empty: then no pause stands, and the next record is the trial', async () => {
    expect(await opened(null)).toBe('nothing')
    expect((await readLedgerSnapshot(ledger.pool)).pauses).toEqual([])
    await ledger.capture([{ outboxId: 'a' }, { outboxId: 'b' }])
    expect((await claim(dispatch, { submissions: 9 })).submissions).toEqual([])
    expect(nameOf(await claimTrial(dispatch))).toBe('submission a')
  })
})

describe('the record whose answer opened the breaker', () => {
  /** Sends the record, which gets 503, and closes the breaker. */
  async function refuse(id: string): Promise<void> {
    await ledger.pool.query(`update outboxd.pause set state = 'closed', cause = null where reason = 'breaker'`)
    await passDueTimes()
    const [sent] = (await claim(dispatch, { submissions: 1 })).submissions
    if (sent?.id !== id) throw new Error('a different record was claimed')
    const change = { state: 'queued', dueInMs: 0, answeredUnavailable: true } as const
    await dispatch.writeOutcomes(
      outcomeBatch({
        transitions: [transition(sent, change)],
        answers: [breakerAnswer('submission', sent.requestId, refused, sent.id)],
      }),
    )
  }

  test('goes behind what comes during the pause', async () => {
    const [id = ''] = await ledger.capture([{}])
    await refuse(id)
    const { rows } = await ledger.pool.query<{ inMs: number }>(
      'select extract(epoch from due_at - clock_timestamp())::float8 * 1000 as "inMs" from outboxd.submission',
    )
    expect(rows[0]?.inMs).toBeGreaterThan(299_000)
  })

  test('ends rejected at the third time while submissions of others got through, and not before', async () => {
    const [id = ''] = await ledger.capture([{}])
    const times = async () => (await ledger.row(id)).opened_times
    await refuse(id)
    await refuse(id)
    expect(await times()).toBe(1) // no other got through
    for (const expected of [2, 3]) {
      await ledger.pool.query(`update outboxd.pause set state = 'closed', cause = null where reason = 'breaker'`)
      await accepted(`other-${expected}`, { done: true })
      await refuse(id)
      expect(await times()).toBe(expected)
    }
    expect(await ledger.row(id)).toMatchObject({ state: 'rejected', may_have_arrived: true })
    expect((await ledger.events(id)).at(-1)).toMatch(/sending -> rejected: .*3 times while others got through/)
  })

  test('is made due by resume --all', async () => {
    const [id = ''] = await ledger.capture([{ outboxId: 'a' }])
    await refuse(id)
    expect(nameOf(await claimTrial(dispatch))).toBe('nothing')
    expect(await makeTrialDue(operator())).toBe('unavailable')
    expect(nameOf(await claimTrial(dispatch))).toBe('submission a')
  })
})
