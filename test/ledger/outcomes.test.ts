import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { Attempts } from '../../src/daemon/attempts.ts'
import type { DaemonContext } from '../../src/daemon/context.ts'
import { lockBudget } from '../../src/ledger/budget.ts'
import { readOrphanedSubmissions, takeOverPolls, writeHeartbeat } from '../../src/ledger/instances.ts'
import type { ClaimedPoll } from '../../src/model/dispatch.ts'
import type { Submission } from '../../src/model/submission.ts'
import { response } from '../support/answers.ts'
import { breakerAnswer, fails, openBreaker } from '../support/breaker.ts'
import type { GivenChange } from '../support/change.ts'
import {
  claim,
  openLedgerForFile,
  outcomeBatch,
  setLimit,
  spendLimit,
  type TestDispatch,
  transition,
} from '../support/ledger.ts'

const ledger = openLedgerForFile()
let dispatch: TestDispatch
beforeAll(async () => {
  dispatch = ledger.dispatch()
})
beforeEach(() => setLimit(ledger.pool))

const accepted = (pollInMs = 0): GivenChange => ({ state: 'accepted', transactionId: randomUUID(), pollInMs })

async function sending(): Promise<Submission> {
  await ledger.capture([{}])
  return (await claim(dispatch, { submissions: 1 })).submissions[0] as Submission
}

/** A submission whose poll is due. */
async function due(): Promise<string> {
  const submission = await sending()
  await dispatch.writeOutcomes(outcomeBatch({ transitions: [transition(submission, accepted())] }))
  return submission.id
}

/** A submission with its poll in hand. */
async function polling(): Promise<ClaimedPoll> {
  await due()
  return (await claim(dispatch, { polls: 1 })).polls[0] as ClaimedPoll
}

/** The ledger, the budget and the queue, to compare. */
async function everything(): Promise<Record<string, unknown>> {
  const queries = {
    submissions: 'select * from outboxd.submission order by seq',
    events: 'select * from outboxd.submission_event order by id',
    counts: 'select state, sum(delta) from outboxd.state_delta group by state order by state',
    requests: 'select * from outboxd.request order by id',
    pauses: 'select * from outboxd.pause order by reason',
    polls: 'select * from outboxd.poll order by submission_id',
  }
  const dumps = Object.entries(queries).map(async ([name, sql]) => [name, (await ledger.pool.query(sql)).rows])
  return Object.fromEntries(await Promise.all(dumps))
}

test('the answer to a poll that was taken over does not stand in the way of the answer to the next poll', async () => {
  const first = await polling()
  const { rows: claimed } = await ledger.pool.query<{ instanceId: string }>(
    'select instance_id as "instanceId" from outboxd.request where claim_id is not null',
  )
  const own = { instanceId: claimed[0]?.instanceId ?? '', isHeld: () => false }
  expect(await takeOverPolls(ledger.pool, ledger.queue, own)).toBe(1)
  const second = (await claim(dispatch, { polls: 1 })).polls[0] as ClaimedPoll
  expect(second.submission.id).toBe(first.submission.id)
  const again = { state: 'accepted', pollInMs: 5_000 } as const
  const transitions = [
    { ...transition(first.submission, again), poll: first.poll },
    { ...transition(second.submission, { state: 'completed' }), poll: second.poll },
  ]
  await dispatch.writeOutcomes(outcomeBatch({ transitions }))
  const { rows } = await ledger.pool.query('select state from outboxd.submission')
  expect(rows).toEqual([{ state: 'completed' }])
  expect(await ledger.polled()).toEqual([])
})

describe('a claim', () => {
  test('takes submissions, polls and requests for them together', async () => {
    const [poll] = [await due()]
    const ids = await ledger.capture([{}, {}])
    const claimed = await claim(dispatch, { submissions: 2, polls: 1 })
    expect(claimed.submissions.map(({ id }) => id)).toEqual(ids)
    expect(claimed.polls).toMatchObject([{ submission: { id: poll, state: 'accepted' } }])
    const { rows } = await ledger.pool.query<{ id: string; purpose: string }>(
      'select id, purpose from outboxd.request where over_at > clock_timestamp() order by id desc limit 3',
    )
    expect(Object.fromEntries(rows.map(({ id, purpose }) => [id, purpose]))).toEqual({
      ...Object.fromEntries(claimed.submissions.map(({ requestId }) => [requestId, 'submission'])),
      ...Object.fromEntries(claimed.polls.map(({ poll }) => [poll.requestId, 'poll'])),
    })
    expect(claimed.mayLeave()).toBe(true)
  })

  test('takes fewer records if fewer requests are free than it asked for', async () => {
    for (let i = 0; i < 2; i++) await due()
    await ledger.capture([{}, {}, {}])
    await ledger.pool.query(`update outboxd.request set over_at = '-infinity'`)
    await setLimit(ledger.pool, 4)
    const claimed = await claim(dispatch, { submissions: 3, polls: 2 })
    expect([claimed.submissions.length, claimed.polls.length]).toEqual([2, 2])
  })

  test('leaves its polls to others if they took the requests that it had seen free', async () => {
    for (let i = 0; i < 3; i++) await due()
    await ledger.pool.query(`update outboxd.request set over_at = '-infinity'`)
    await setLimit(ledger.pool, 2)
    expect((await claim(dispatch, { polls: 3 })).polls).toEqual([])
    expect((await claim(dispatch, { polls: 2 })).polls).toHaveLength(2)
  })

  test('takes nothing if no request is free', async () => {
    await due()
    await ledger.capture([{}])
    await setLimit(ledger.pool, 3)
    await spendLimit(ledger.pool)
    expect(await claim(dispatch, { submissions: 1, polls: 1 })).toMatchObject({ submissions: [], polls: [] })
    expect((await ledger.pool.query('select from outboxd.request')).rowCount).toBe(3)
  })

  test('of a daemon that stops inside it holds up the others for 2 s, and fails', async () => {
    await ledger.capture([{}])
    const [locked, continued] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const stopped = ledger.dispatch({
      history: {
        async mayClaim(db) {
          await lockBudget(db)
          locked.resolve()
          await continued.promise
          return true
        },
        assertCommitIsCertain: async () => {},
        rememberRequest() {},
      },
    })
    const failing = claim(stopped, { submissions: 1 }).catch((error: unknown) => error)
    await locked.promise
    const beganMs = performance.now()
    expect((await claim(dispatch, { submissions: 1 })).submissions).toHaveLength(1)
    expect(performance.now() - beganMs).toBeLessThan(4_000)
    continued.resolve()
    expect(await failing).toBeInstanceOf(Error)
  })

  test('reads bodies only after its COMMIT, so that no lock waits until a daemon has received them', async () => {
    await ledger.capture([{ body: '{"a":1}' }])
    const committed: object[] = []
    const request = { id: randomUUID(), submissions: 1, polls: 0, rarePolls: 0 }
    const { submissions } = await dispatch.claim(request, (given) => committed.push(...given))
    expect(committed[0]).not.toHaveProperty('body')
    expect(submissions).toMatchObject([{ body: '{"a":1}' }])
  })

  test('fails if another instance has settled a record before its body is read', async () => {
    const [id = ''] = await ledger.capture([{}])
    const late = ledger.dispatch({
      history: {
        mayClaim: async () => true,
        rememberRequest() {},
        async assertCommitIsCertain() {
          await ledger.pool.query(
            `update outboxd.submission set state = 'uncertain', claim_id = null, instance_id = null, ended_at = now() where id = $1`,
            [id],
          )
        },
      },
    })
    await expect(claim(late, { submissions: 1 })).rejects.toThrow('another instance has settled a record of the claim')
  })

  test('lets its requests leave for 3 s', async () => {
    await ledger.capture([{}])
    let ageMs = 0
    const { mayLeave } = await claim(ledger.dispatch({}, { stopwatch: () => () => ageMs }), { submissions: 1 })
    ageMs = 2_999
    expect(mayLeave()).toBe(true)
    ageMs = 3_000
    expect(mayLeave()).toBe(false)
  })

  test('takes nothing while a pause stands', async () => {
    await ledger.capture([{}])
    for (const forMs of [60_000, -1]) {
      await openBreaker(ledger.pool, { forMs })
      expect(await claim(dispatch, { submissions: 1 })).toMatchObject({ submissions: [], polls: [] })
    }
  })

  test('takes nothing if any part of it fails', async () => {
    await due()
    await ledger.capture([{}])
    const before = await everything()
    const queue = { fetch: () => Promise.reject(new Error('the queue is away')) }
    const commits: unknown[] = []
    const request = { id: randomUUID(), submissions: 1, polls: 1, rarePolls: 0 }
    await expect(ledger.dispatch({ queue } as object).claim(request, (taken) => commits.push(taken))).rejects.toThrow(
      'away',
    )
    expect(await everything()).toEqual(before)
    expect(commits).toEqual([])
  })

  test('deletes polls of submissions that no longer wait for them', async () => {
    const id = await due()
    await ledger.pool.query(`update outboxd.submission set state = 'discarded', ended_at = now() where id = $1`, [id])
    expect((await claim(dispatch, { polls: 5 })).polls).toEqual([])
    expect(await ledger.polled()).toEqual([])
  })

  test('whose answer was lost is given back, and its record can be claimed again', async () => {
    const captured = await ledger.capture([{}])
    const id = randomUUID()
    await dispatch.claim({ id, submissions: 1, polls: 0, rarePolls: 0 }, () => {})
    await dispatch.requeueUnsentClaim(id, captured)
    expect((await claim(dispatch, { submissions: 1 })).submissions).toHaveLength(1)
  })
})

describe('a batch of outcomes', () => {
  test('enqueues the first poll together with an acceptance', async () => {
    const id = await due()
    expect(await ledger.polled()).toEqual([id])
    expect((await claim(dispatch, { polls: 1 })).polls).toMatchObject([{ submission: { id } }])
  })

  test('replaces the job of a pending poll', async () => {
    const { submission, poll } = await polling()
    const change: GivenChange = { state: 'accepted', polls: 1, pollInMs: 0 }
    await dispatch.writeOutcomes(outcomeBatch({ transitions: [transition(submission, change, poll)] }))
    expect((await claim(dispatch, { polls: 1 })).polls).toMatchObject([{ submission: { id: submission.id, polls: 1 } }])
  })

  test('deletes the job of an ended record', async () => {
    const { submission, poll } = await polling()
    const { written } = await dispatch.writeOutcomes(
      outcomeBatch({ transitions: [transition(submission, { state: 'completed', polls: 1 }, poll)] }),
    )
    expect(written).toMatchObject([{ submissionId: submission.id, state: 'completed', polls: 1 }])
    expect(written[0]?.lifetimeMs).toBeGreaterThan(0)
    expect(await ledger.polled()).toEqual([])
  })

  test('writes nothing for a poll that another instance has taken over', async () => {
    const { submission, poll } = await polling()
    await ledger.pool.query('update outboxd.request set claim_id = null where id = $1', [poll.requestId])
    const before = await everything()
    const late = transition(submission, { state: 'completed' }, poll)
    expect((await dispatch.writeOutcomes(outcomeBatch({ transitions: [late] }))).written).toEqual([])
    expect(await everything()).toEqual(before)
  })

  test('keeps the request of a poll that never left until its step is written', async () => {
    const { submission, poll } = await polling()
    await dispatch.writeOutcomes(outcomeBatch({ unsentRequests: [poll.requestId] }))
    const unsent = transition(submission, { state: 'accepted', pollInMs: 0 }, poll)
    expect((await dispatch.writeOutcomes(outcomeBatch({ transitions: [unsent] }))).written).toHaveLength(1)
  })

  test('does no more when it is written twice', async () => {
    const [submission, other] = [await sending(), await sending()]
    const [answered, unsent] = [await dispatch.claimTokenRequest(1), await dispatch.claimTokenRequest(1)]
    const whole = outcomeBatch({
      transitions: [transition(submission, accepted(60_000)), transition(other, { state: 'failed' })],
      answeredRequests: [answered?.requestId ?? ''],
      unsentRequests: [unsent?.requestId ?? ''],
    })
    expect((await dispatch.writeOutcomes(whole)).written).toHaveLength(2)
    const once = await everything()
    expect((await dispatch.writeOutcomes(whole)).written).toEqual([])
    expect(await everything()).toEqual(once)
  })

  test('is not written at all if any part of it is refused', async () => {
    const [good, bad] = [await sending(), await sending()]
    const { submission, poll } = await polling()
    const before = await everything()
    const refused = outcomeBatch({
      transitions: [
        transition(good, accepted()),
        transition(submission, { state: 'completed' }, poll),
        transition(bad, { state: 'accepted', pollInMs: 0 }), // without an id
      ],
      answers: [breakerAnswer('token', null, fails())],
    })
    await expect(dispatch.writeOutcomes(refused)).rejects.toThrow('check constraint')
    expect(await everything()).toEqual(before)
  })

  test.each([
    ['the job of an acceptance', 'insert on outboxd_jobs.job for each row'],
    ['what follows the jobs', `update on outboxd.request for each row when (old.purpose = 'token')`],
  ])('writes neither a step nor a job if %s is refused', async (_, refused) => {
    const accepts = await sending()
    const { submission, poll } = await polling()
    const token = await dispatch.claimTokenRequest(1)
    const before = await everything()
    await ledger.pool.query(`create function meddle() returns trigger language plpgsql as $$
      begin raise exception 'refused'; end $$;
      create trigger meddle before ${refused} execute function meddle()`)
    onTestFinished(() => ledger.pool.query('drop function meddle() cascade').then(() => {}))
    const batch = outcomeBatch({
      transitions: [transition(accepts, accepted()), transition(submission, { state: 'completed' }, poll)],
      answeredRequests: [token?.requestId ?? ''],
    })
    await expect(dispatch.writeOutcomes(batch)).rejects.toThrow('refused')
    expect(await everything()).toEqual(before)
  })

  test('is written even if a text was cut within an emoji (it was refused, and tried again for ever)', async () => {
    const submission = await sending()
    const attempts = new Attempts(
      {
        config: { uncertainPolicy: 'hold', serverErrorPolicy: 'retry' },
      } as DaemonContext,
      { isRefusedForAge: () => false, isRefusedAgain: () => false },
      { nextPollDelayMs: () => 0 },
    )
    const refusal = response(400, { code: 'E001', message: `${'x'.repeat(499)}😀` })
    const { step } = attempts.interpretAnswer(submission, refusal)
    expect(step.message?.isWellFormed()).toBe(true)
    const torn = { ...step, message: `${step.message}\ud83d` } // as if a part before had cut it
    const { written } = await dispatch.writeOutcomes(
      outcomeBatch({ transitions: [{ submission, poll: null, request: null, ...torn }] }),
    )
    expect(written).toMatchObject([{ state: 'rejected' }])
  })

  test('counts requests of another client if the service reports fewer requests left than the ledger counts', async () => {
    await setLimit(ledger.pool, 100)
    expect(await dispatch.writeOutcomes(outcomeBatch({ remaining: { requests: 10, ageMs: () => 0 } }))).toEqual({
      written: [],
      heldBack: 90,
    })
    expect(await dispatch.writeOutcomes(outcomeBatch({ remaining: { requests: 10, ageMs: () => 0 } }))).toEqual({
      written: [],
      heldBack: 0,
    })
  })
})

describe('maintenance', () => {
  const instance = { id: randomUUID(), version: 'test', host: 'test', settings: {} }

  test('writes a rescue with its next poll, and the outcome of the former owner comes too late', async () => {
    const submission = await sending()
    const probe: GivenChange = { state: 'sending', transactionId: submission.id, pollInMs: 0 }
    const rescuer = ledger.dispatch({ instance: { id: instance.id, who: 'test' } })
    const rescue = outcomeBatch({ transitions: [transition(submission, probe)] })
    expect((await rescuer.writeOutcomes(rescue)).written).toHaveLength(1)
    expect(await ledger.polled()).toHaveLength(1)
    expect(
      (await dispatch.writeOutcomes(outcomeBatch({ transitions: [transition(submission, accepted())] }))).written,
    ).toEqual([])
    expect((await claim(dispatch, { polls: 1 })).polls).toMatchObject([
      { submission: { id: submission.id, probing: true } },
    ])
  })

  test('finds the records of dead instances', async () => {
    await sending()
    await writeHeartbeat(ledger.pool, instance)
    expect(await readOrphanedSubmissions(ledger.pool, instance.id, () => true)).toEqual([])
    await ledger.pool.query(`update outboxd.instance set unbroken_since = unbroken_since - interval '6 s'`)
    expect(await readOrphanedSubmissions(ledger.pool, instance.id, () => true)).toHaveLength(1)
  })
})
