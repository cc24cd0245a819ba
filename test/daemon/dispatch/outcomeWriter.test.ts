import { expect, test } from 'vitest'
import type { DaemonContext } from '../../../src/daemon/context.ts'
import { emptyOutcome, type OutcomeToWrite, OutcomeWriter } from '../../../src/daemon/dispatch/outcomeWriter.ts'
import type { OutcomeBatch } from '../../../src/model/dispatch.ts'
import { breakerAnswer, fails } from '../../support/breaker.ts'
import { asChange } from '../../support/change.ts'
import { submission } from '../../support/submission.ts'
import { until } from '../../support/until.ts'

const failed = (message: string, code: string) => Object.assign(new Error(message), { code })
const passing = failed('the database is away', '57P01')
const refusal = failed('refused', '22P05')
const lock = failed('another session has locked the record', '55P03')

const work = (id: string | null, given: Partial<Omit<OutcomeBatch, 'transitions'>> = {}): OutcomeToWrite => ({
  ...emptyOutcome,
  transition:
    id === null
      ? null
      : {
          submission: submission({ id }),
          poll: null,
          change: asChange({ state: 'failed' }),
          cause: 'failed',
          message: '',
          request: null,
        },
  ...given,
})

/** Requests whose end was written in a batch without outcomes. */
const endedAlone = (writes: readonly OutcomeBatch[]) =>
  writes.flatMap(({ transitions, answeredRequests }) => (transitions.length === 0 ? answeredRequests : []))

/** An answer that opens the breaker. */
const refused = breakerAnswer('submission', '1', fails('unavailable', { isOfSubmission: true }), 'a')

const idsOf = ({ transitions }: OutcomeBatch) => transitions.map(({ submission }) => submission.id)

/** An outcome writer whose writes wait until the test lets them through, or fail as `outcome` says. */
function setup({ outcome = () => null }: { outcome?: (batch: OutcomeBatch, nth: number) => Error | null } = {}) {
  const writes: OutcomeBatch[] = []
  const written: string[] = []
  const abandoned: string[][] = []
  const bared: string[] = []
  const waits: number[] = []
  const doors: (() => void)[] = []
  let open = true
  async function write(batch: OutcomeBatch): Promise<void> {
    writes.push(batch)
    const nth = writes.length
    if (!open) await new Promise<void>((resolve) => doors.push(resolve))
    const error = outcome(batch, nth)
    if (error) throw error
    written.push(...idsOf(batch))
  }
  const log = {
    error(event: string, { submissionId }: { submissionId?: string | undefined } = {}) {
      if (event.includes('refused an outcome twice')) abandoned.push([String(submissionId)])
      else if (event.includes('without the texts')) bared.push(String(submissionId))
    },
  }
  const outcomeWriter = new OutcomeWriter(
    write,
    { clock: { nowMs: () => 7 }, log } as unknown as DaemonContext,
    async (ms) => {
      waits.push(ms)
      await new Promise(setImmediate)
    },
  )
  return {
    outcomeWriter,
    writes,
    written,
    abandoned,
    bared,
    waits,
    shut: () => {
      open = false
    },
    letThrough: () => {
      open = true
      for (const door of doors.splice(0)) door()
    },
  }
}

test('the first outcome is written at once, with the end of its request', async () => {
  const { outcomeWriter, writes } = setup()
  await outcomeWriter.add(work('a', { answeredRequests: ['7'] }))
  expect(writes.map(idsOf)).toEqual([['a']])
  expect(writes[0]?.answeredRequests).toEqual(['7'])
})

test('one write runs at a time, and the next takes all outcomes that came in between', async () => {
  const { outcomeWriter, writes, shut, letThrough } = setup()
  shut()
  const added = ['a', 'b', 'c', 'd'].map((id) => outcomeWriter.add(work(id)))
  expect(writes.map(idsOf)).toEqual([['a']])
  letThrough()
  await Promise.all(added)
  expect(writes.map(idsOf)).toEqual([['a'], ['b', 'c', 'd']])
})

test('a batch has every answer and the lowest number of requests left', async () => {
  const { outcomeWriter, writes, shut, letThrough } = setup()
  shut()
  const added = [
    outcomeWriter.add(work('a')),
    outcomeWriter.add(work('b', { answers: [refused], remaining: { requests: 7, ageMs: () => 7 } })),
    outcomeWriter.add(work('c', { answers: [refused], remaining: { requests: 3, ageMs: () => 3 } })),
    outcomeWriter.add(work(null, { answers: [refused] })),
  ]
  letThrough()
  await Promise.all(added)
  expect(writes[0]).toMatchObject({ answers: [], remaining: null })
  expect(writes[1]).toMatchObject({
    answers: [refused, refused, refused],
    remaining: { requests: 3 },
  })
  expect(writes[1]?.remaining?.ageMs()).toBe(7)
})

test('adding an outcome resolves only when it is written', async () => {
  const { outcomeWriter, shut, letThrough } = setup()
  shut()
  let done = false
  const added = outcomeWriter.add(work('a')).then(() => {
    done = true
  })
  await new Promise(setImmediate)
  expect(done).toBe(false)
  letThrough()
  await added
  expect(done).toBe(true)
})

test('a write that fails for a passing reason is repeated until it succeeds', async () => {
  const { outcomeWriter, writes, written, waits } = setup({ outcome: (_, nth) => (nth <= 5 ? passing : null) })
  await Promise.all([outcomeWriter.add(work('a')), outcomeWriter.add(work('b'))])
  expect(writes.map(idsOf)).toEqual([['a'], ['a'], ['a'], ['a'], ['a'], ['a'], ['b']])
  expect(written).toEqual(['a', 'b'])
  expect(waits).toEqual([500, 500, 500, 500, 500])
})

test('an outcome that the database refuses is written separately, and only that one is given up', async () => {
  const outcome = (batch: OutcomeBatch) => (idsOf(batch).includes('bad') ? refusal : null)
  const { outcomeWriter, written, abandoned, shut, letThrough, writes } = setup({ outcome })
  shut()
  const added = ['first', 'a', 'bad', 'b'].map((id) =>
    outcomeWriter.add(work(id, { answeredRequests: [id], remaining: { requests: 5, ageMs: () => 5 } })),
  )
  letThrough()
  await Promise.all(added)
  expect(written).toEqual(['first', 'a', 'b'])
  expect(abandoned).toEqual([['bad']])
  expect(endedAlone(writes)).toEqual(['bad'])
})

test('an outcome whose record is locked is written when the lock is released, and no other waits for it', async () => {
  let isLocked = true
  const outcome = (batch: OutcomeBatch) => (isLocked && idsOf(batch).includes('held') ? lock : null)
  const { outcomeWriter, written, shut, letThrough, writes } = setup({ outcome })
  shut()
  const added = ['first', 'a', 'held', 'b'].map((id) => outcomeWriter.add(work(id, { answeredRequests: [id] })))
  letThrough()
  await Promise.all([added[0], added[1], added[3]])
  await outcomeWriter.add(work('later'))
  expect(written).toEqual(['first', 'a', 'b', 'later'])
  expect(outcomeWriter.unwritten()).toEqual([{ submissionId: 'held', sinceMs: 7, error: lock }])
  expect(endedAlone(writes)).toEqual(['held'])
  isLocked = false
  await Promise.all(added)
  expect(written.at(-1)).toBe('held')
  expect(outcomeWriter.unwritten()).toEqual([])
})

test('a refused outcome does not delay the next (it blocked all later outcomes for ever)', async () => {
  const outcome = (batch: OutcomeBatch) => (idsOf(batch).includes('bad') ? refusal : null)
  const { outcomeWriter, written, abandoned } = setup({ outcome })
  await Promise.all([outcomeWriter.add(work('bad')), outcomeWriter.add(work('good'))])
  expect(abandoned).toEqual([['bad']])
  expect(written).toEqual(['good'])
})

test('the breaker opens at once, even if the step of its record is refused or has to wait for a lock', async () => {
  for (const [error, isGivenUp] of [
    [refusal, true],
    [lock, false],
  ] as const) {
    let isAway = true
    const outcome = ({ transitions }: OutcomeBatch) => (transitions.length > 0 && isAway ? error : null)
    const { outcomeWriter, writes, abandoned } = setup({ outcome })
    const added = outcomeWriter.add(work('a', { answers: [refused] }))
    await until(
      () => writes.filter(({ answers, transitions }) => answers.length === 1 && transitions.length === 0).length,
      (count) => count === 1,
    )
    isAway = isGivenUp
    await added
    expect(abandoned).toEqual(isGivenUp ? [['a']] : [])
    expect(writes.at(-1)).toMatchObject({ answers: [], transitions: [{ submission: { id: 'a' } }] })
  }
})

test('an answer that the database refuses does not prevent its outcome from being written', async () => {
  const { outcomeWriter, written } = setup({ outcome: ({ answers }) => (answers.length > 0 ? refusal : null) })
  await outcomeWriter.add(work('a', { answers: [refused] }))
  expect(written).toEqual(['a'])
})

test('among many outcomes with failures of both kinds, none is lost and none is written twice', async () => {
  let nth = 0
  const outcome = (batch: OutcomeBatch) => {
    nth += 1
    if (nth % 3 === 0) return passing
    return idsOf(batch).includes('17') ? refusal : null
  }
  const { outcomeWriter, written, abandoned } = setup({ outcome })
  const ids = Array.from({ length: 50 }, (_, i) => String(i))
  await Promise.all(
    ids.map(async (id, i) => {
      for (let turns = 0; turns < i % 7; turns++) await new Promise(setImmediate)
      await outcomeWriter.add(work(id))
    }),
  )
  expect(written.toSorted()).toEqual(ids.filter((id) => id !== '17').toSorted())
  expect(abandoned).toEqual([['17']])
})

test('an outcome that is refused for its texts is written without them, and no other waits for it', async () => {
  const hostile = 'x'.repeat(3_000)
  const outcome = ({ transitions, answers }: OutcomeBatch) =>
    JSON.stringify([transitions.map(({ change }) => change), answers]).includes(hostile) ? refusal : null
  const { outcomeWriter, written, bared, abandoned, writes, waits } = setup({ outcome })
  const bad = work('bad', { answers: [refused] })
  Object.assign(bad.transition?.change ?? {}, { error: hostile, errorCode: hostile })
  const added = [outcomeWriter.add(bad), outcomeWriter.add(work('a')), outcomeWriter.add(work('b'))]
  await Promise.all(added.slice(1))
  expect(written).toEqual(['bad', 'a', 'b'])
  expect(writes.some(({ answers, transitions }) => answers.length > 0 && transitions.length === 0)).toBe(true)
  await added[0]
  expect(waits).toEqual([])
  expect(bared).toEqual(['bad'])
  expect(abandoned).toEqual([])
  const lastOfBad = writes.filter((batch) => idsOf(batch).join() === 'bad').at(-1)
  expect(lastOfBad?.transitions[0]).toMatchObject({
    change: { state: 'failed', errorCode: null, error: expect.stringMatching(/^[ -~]+$/) },
    message: expect.stringContaining('left out'),
  })
})

test('a record whose id the ledger cannot store becomes uncertain', async () => {
  const outcome = ({ transitions }: OutcomeBatch) =>
    transitions.some(({ change }) => change.transactionId === 'id-Ł') ? refusal : null
  const { outcomeWriter, writes } = setup({ outcome })
  const accepted = work('a')
  if (accepted.transition !== null)
    accepted.transition.change = asChange({ state: 'accepted', transactionId: 'id-Ł', pollInMs: 5 })
  await outcomeWriter.add(accepted)
  const change = writes.at(-1)?.transitions[0]?.change
  expect(change).toMatchObject({ state: 'uncertain', error: expect.stringContaining('the id that the service gave') })
  expect(change).not.toHaveProperty('transactionId')
  expect(change).not.toHaveProperty('pollInMs')
})
