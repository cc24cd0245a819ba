import { describe, expect, test } from 'vitest'
import { createWitness } from '../../src/observe/witness.ts'
import type { Answer, Breach, Change, Submission, Worked } from '../../src/record.ts'
import { outcomeOf } from '../../src/service/outcome.ts'
import { noAnswer, response } from '../support/answers.ts'
import { submission } from '../support/submission.ts'

/** A witness whose log lines and metric calls are kept: `name(first arguments)`. */
function setup() {
  const lines: { level: string; words: string; fields: Record<string, unknown> }[] = []
  const counted: string[] = []
  const level =
    (name: string) =>
    (words: string, fields: Record<string, unknown> = {}) =>
      void lines.push({ level: name, words, fields })
  const count =
    (name: string) =>
    (...args: unknown[]) =>
      void counted.push(`${name}(${args.join(', ')})`)
  const metrics = new Proxy({}, { get: (_, name) => count(String(name)) })
  const log = { debug: level('debug'), info: level('info'), warn: level('warn'), error: level('error') }
  return { witness: createWitness({ log, metrics, outcomeOf } as never), lines, counted }
}

const worked = (change: Change, answer: Answer | null, given: Partial<Worked> = {}): Worked => ({
  step: { change, cause: 'test', pause: null },
  answer,
  breach: null,
  ...given,
})
const accepted: Partial<Submission> = { state: 'accepted', transactionId: 'tx', claimId: null, jobId: 'job' }

describe('requests', () => {
  test.each<[string, Partial<Submission>]>([
    ['submit', {}],
    ['order', { resource: 'orders' }],
    ['status', accepted],
    ['order_status', { ...accepted, resource: 'orders' }],
    ['status', { probing: true }],
  ])('are counted under %s for %o', (endpoint, of) => {
    const { witness, counted } = setup()
    witness.worked(submission(of), worked({ state: 'failed' }, response(200)))
    expect(counted).toEqual([`requestDone(${endpoint}, ok, 12)`])
  })

  test('that were never made are not counted', () => {
    const { witness, counted } = setup()
    witness.worked(submission(), worked({ state: 'queued' }, null))
    expect(counted).toEqual([])
  })

  test.each([
    [response(400, { code: 'E001' }), ['requestDone(submit, rejected, 12)', 'serviceError(E001)']],
    [
      response(400, { code: 'E777' }),
      ['requestDone(submit, rejected, 12)', 'serviceError(E777)', 'breach(unknown_code)'],
    ],
    [noAnswer({ sent: true, cause: 'timeout' }), ['requestDone(submit, timeout, 12)']],
  ])('%#: codes are counted, unknown ones as a breach of contract', (answer, expected) => {
    const { witness, counted } = setup()
    witness.requested('submit', answer)
    expect(counted).toEqual(expected)
  })

  test('whose answer broke the contract are counted as such', () => {
    const { witness, counted } = setup()
    witness.worked(submission(), worked({ state: 'uncertain' }, response(200), { breach: 'missing_id' }))
    expect(counted).toContain('breach(missing_id)')
  })
})

describe('log lines', () => {
  test('one for each stage of a submission, at its end, with ids and without bodies', () => {
    const { witness, lines } = setup()
    witness.worked(
      submission({ body: '{"secret":1}' }),
      worked({ state: 'accepted', transactionId: 'tx' }, response(201, {})),
    )
    expect(lines).toEqual([
      {
        level: 'info',
        words: 'submitted',
        fields: {
          submissionId: submission().id,
          outboxId: '1',
          attempt: 1,
          transactionId: 'tx',
          endpoint: 'submit',
          state: 'accepted',
          outcome: 'ok',
          code: undefined,
          reason: undefined,
          durationMs: 12,
        },
      },
    ])
  })

  test.each<[Change, string]>([
    [{ state: 'completed' }, 'info'],
    [{ state: 'failed', errorCode: 'E9' }, 'warn'],
    [{ state: 'rejected' }, 'warn'],
    [{ state: 'uncertain' }, 'warn'],
    [{ state: 'queued' }, 'info'],
  ])('%o is told as %s', (change, level) => {
    const { witness, lines } = setup()
    witness.worked(submission(accepted), worked(change, response(200)))
    expect(lines).toMatchObject([{ level, words: 'tracked', fields: { state: change.state } }])
  })

  test('a poll that finds its transaction pending leaves none', () => {
    const { witness, lines } = setup()
    witness.worked(submission(accepted), worked({ state: 'accepted', pollInMs: 1 }, response(200)))
    expect(lines).toEqual([])
  })

  test('a pause is told with its reason, though the state stays', () => {
    const { witness, lines } = setup()
    const pause = { reason: 'throttled', askedMs: null, detail: 'x' } as const
    const step = { change: { state: 'accepted', pollInMs: 0 } as const, cause: 'pause', pause }
    witness.worked(submission(accepted), { step, answer: response(429), breach: null })
    expect(lines).toMatchObject([{ fields: { reason: 'throttled', outcome: 'throttled' } }])
  })

  test('taking over and renewing jobs are told where there was anything', () => {
    const { witness, lines } = setup()
    witness.takenOver(0)
    witness.jobsRenewed(0)
    witness.takenOver(2)
    witness.jobsRenewed(3)
    witness.captured(4)
    expect(lines.map(({ level, fields }) => [level, fields.count])).toEqual([
      ['warn', 2],
      ['warn', 3],
      ['info', 4],
    ])
  })
})

describe('what was written', () => {
  const written = (state: Submission['state'], polls = 0, breach: Breach | null = null) => ({
    submissionId: 'a',
    state,
    lifetimeMs: 1_500,
    polls,
    breach,
  })

  test('each end is counted with its duration, and its polls where it was tracked', () => {
    const { witness, counted } = setup()
    witness.settled({ written: [written('completed', 2), written('rejected'), written('accepted', 1)], heldBack: 0 })
    expect(counted.filter((call) => !call.startsWith('heldBack'))).toEqual([
      'finished(completed, 1500)',
      'transactionPolled(2)',
      'finished(rejected, 1500)',
    ])
  })

  test('transactions that ended since it was last asked are something to learn from', () => {
    const { witness } = setup()
    witness.settled({ written: [written('completed', 2), written('failed', 1), written('rejected')], heldBack: 0 })
    expect(witness.takeCompletions()).toBe(2)
    expect(witness.takeCompletions()).toBe(0)
  })

  test('steps wake whoever tells the outbox; nothing written wakes nobody', () => {
    const { witness } = setup()
    let woken = 0
    witness.onSettled(() => {
      woken += 1
    })
    witness.settled({ written: [], heldBack: 0 })
    expect(woken).toBe(0)
    witness.settled({ written: [written('accepted')], heldBack: 0 })
    expect(woken).toBe(1)
  })

  test('what the writing found wrong with an answer is a breach of contract that is told', () => {
    const { witness, counted, lines } = setup()
    witness.settled({ written: [written('uncertain', 0, 'duplicate_id')], heldBack: 0 })
    expect(counted).toContain('breach(duplicate_id)')
    expect(lines[0]).toMatchObject({ level: 'warn', fields: { submissionId: 'a' } })
  })

  test('holding back is a breach of contract that is told', () => {
    const { witness, counted, lines } = setup()
    witness.settled({ written: [], heldBack: 12 })
    expect(counted).toEqual(['heldBack(12)', 'breach(rate_limit_lower)'])
    expect(lines).toMatchObject([{ level: 'warn', fields: { count: 12 } }])
  })
})
