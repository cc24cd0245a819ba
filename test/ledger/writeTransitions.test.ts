import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { claimQueuedSubmissions, requeueUnsentClaim } from '../../src/ledger/claims.ts'
import { writeTransitions } from '../../src/ledger/outcomes.ts'
import { type EventCause, eventActors, eventCauses } from '../../src/model/eventCauses.ts'
import type { Submission } from '../../src/model/submission.ts'
import { asChange, type GivenChange } from '../support/change.ts'
import { openLedgerForFile } from '../support/ledger.ts'

const ledger = openLedgerForFile()

async function sending(claimId = randomUUID()): Promise<Submission> {
  await ledger.capture([{}])
  const [claimed] = await claimQueuedSubmissions(ledger.pool, {
    id: claimId,
    instanceId: randomUUID(),
    limit: 1,
    who: 'test',
  })
  return claimed as Submission
}

const write = (
  submission: Submission,
  change: GivenChange,
  cause: EventCause = 'asked_again',
  message: string | null = null,
) => writeTransitions(ledger.pool, [{ submission, poll: null, change: asChange(change), cause, message }], 'test')

const acceptance: GivenChange = { state: 'accepted', transactionId: 'tx', pollInMs: 1_000 }

async function accepted(): Promise<Submission> {
  const submission = await sending()
  await write(submission, acceptance)
  return ledger.read(submission.id)
}

test('a step is written with its event and a new revision, and makes a report due', async () => {
  const submission = await sending()
  const written = await write(submission, acceptance, 'accepted')
  expect(written).toMatchObject([{ submissionId: submission.id, state: 'accepted', polls: 0 }])
  expect(await ledger.row(submission.id)).toMatchObject({
    state: 'accepted',
    revision: 2,
    claim_id: null,
    instance_id: null,
    transaction_id: 'tx',
    report_due: true,
    ended_at: null,
  })
  expect((await ledger.events(submission.id)).at(-1)).toBe('sending -> accepted: accepted')
})

test('columns that a step leaves out stay as they were', async () => {
  const submission = await sending()
  await write(submission, { state: 'queued', dueInMs: 0, serverErrors: 2, inDoubt: true, repeatedAfter401: true })
  const before = await ledger.read(submission.id)
  const [again] = await claimQueuedSubmissions(ledger.pool, {
    id: randomUUID(),
    instanceId: randomUUID(),
    limit: 1,
    who: 'test',
  })
  await write(again as Submission, { state: 'queued', dueInMs: 0 })
  expect(await ledger.read(submission.id)).toMatchObject({
    ...before,
    revision: before.revision + 2,
    attempt: 2,
    ageMs: expect.any(Number),
  })
})

test('a step without an error clears the code and the error of the step before', async () => {
  const submission = await sending()
  await write(submission, { state: 'queued', dueInMs: 0, errorCode: 'E003', error: 'later' })
  const [again] = await claimQueuedSubmissions(ledger.pool, {
    id: randomUUID(),
    instanceId: randomUUID(),
    limit: 1,
    who: 'test',
  })
  await write(again as Submission, { state: 'queued', dueInMs: 0 })
  expect(await ledger.row(submission.id)).toMatchObject({ error_code: null, error: null })
})

describe('a step that comes too late changes nothing and writes no event:', () => {
  async function refuses(late: Submission, change: GivenChange): Promise<void> {
    const row = await ledger.row(late.id)
    const events = await ledger.events(late.id)
    expect(await write(late, change)).toEqual([])
    expect(await ledger.row(late.id)).toEqual(row)
    expect(await ledger.events(late.id)).toEqual(events)
  }

  test('it was written already', async () => {
    const submission = await sending()
    await write(submission, acceptance)
    await refuses(submission, acceptance)
  })

  test('a later attempt is on the wire', async () => {
    const submission = await sending()
    await write(submission, { state: 'queued', dueInMs: 0 })
    await claimQueuedSubmissions(ledger.pool, {
      id: submission.claimId ?? '',
      instanceId: randomUUID(),
      limit: 1,
      who: 'test',
    })
    await refuses(submission, acceptance)
  })

  test('the same attempt belongs to another claim', async () => {
    const submission = await sending()
    await refuses({ ...submission, claimId: randomUUID() }, acceptance)
  })

  test('its claim was given back', async () => {
    const submission = await sending()
    await requeueUnsentClaim(ledger.pool, submission.claimId ?? '', 'test')
    await refuses(submission, { state: 'failed', error: 'late' })
  })

  test('another instance has rescued it', async () => {
    const submission = await sending()
    await write(submission, { state: 'uncertain', error: 'the instance died' })
    await refuses(submission, { state: 'failed', error: 'late' })
  })

  test('another step was written since its poll was claimed', async () => {
    const submission = await accepted()
    await write(submission, { state: 'accepted', polls: 1, pollInMs: 0 })
    await refuses(submission, { state: 'completed' })
  })

  test('an operator discarded it', async () => {
    const submission = await sending()
    await write(submission, { state: 'uncertain' })
    const uncertain = await ledger.read(submission.id)
    await write(uncertain, { state: 'discarded' })
    await refuses(submission, acceptance)
    await refuses(uncertain, { state: 'queued', dueInMs: 0 })
  })
})

test('in a batch, a step that comes too late does not keep back the others', async () => {
  const [late, good] = [await sending(), await sending()]
  await write(late, { state: 'failed' })
  const step = (submission: Submission) => ({
    submission,
    poll: null,
    change: asChange({ state: 'failed' }),
    cause: 'asked_again' as const,
    message: null,
  })
  const written = await writeTransitions(ledger.pool, [step(late), step(good)], 'test')
  expect(written.map(({ submissionId }) => submissionId)).toEqual([good.id])
})

test('a poll that finds its transaction pending is counted, and leaves no event', async () => {
  const submission = await accepted()
  const events = await ledger.events(submission.id)
  await write(submission, { state: 'accepted', polls: 1, pollInMs: 1_000, notDoneMs: 900 }, 'pending')
  expect(await ledger.read(submission.id)).toMatchObject({ polls: 1, notDoneMs: 900 })
  expect(await ledger.events(submission.id)).toEqual(events)
})

test('the age counts from acceptance through all polls, and a submission that is queued again has none', async () => {
  const submission = await accepted()
  await ledger.pool.query(`update outboxd.submission set accepted_at = accepted_at - interval '20 s'`)
  await write(submission, { state: 'accepted', pollInMs: 0 })
  const polled = await ledger.read(submission.id)
  expect(polled.ageMs).toBeGreaterThanOrEqual(20_000)
  await write(polled, { state: 'queued', dueInMs: 0, transactionId: null })
  expect(await ledger.row(submission.id)).toMatchObject({ accepted_at: null, transaction_id: null })
})

test('a transaction that a probe found pending is as old as its request', async () => {
  const submission = await sending()
  await write(submission, { state: 'sending', transactionId: 'tx', pollInMs: 0 })
  await ledger.pool.query(`update outboxd.submission set sent_at = sent_at - interval '20 s'`)
  const probing = await ledger.read(submission.id)
  expect(probing.ageMs).toBeGreaterThanOrEqual(20_000)
  await write(probing, { state: 'accepted', pollInMs: 0, notDoneMs: 20_000 })
  expect((await ledger.read(submission.id)).ageMs).toBeGreaterThanOrEqual(20_000)
})

test('the time since when the service does not know a transaction is kept until an answer knows it', async () => {
  const submission = await accepted()
  await write(submission, { state: 'accepted', pollInMs: 0, unknown: true })
  await ledger.pool.query(`update outboxd.submission set unknown_since = unknown_since - interval '9 min'`)
  const unknown = await ledger.read(submission.id)
  await write(unknown, { state: 'accepted', pollInMs: 0, unknown: true })
  const still = await ledger.read(submission.id)
  expect(still.unknownForMs).toBeGreaterThanOrEqual(540_000)
  await write(still, { state: 'accepted', pollInMs: 0 })
  expect((await ledger.read(submission.id)).unknownForMs).toBeNull()
})

test('characters that Postgres cannot store are replaced, and the step is written', async () => {
  const submission = await sending()
  const message = 'a\0b\ud800c'
  await write(submission, { state: 'failed', error: message, errorCode: message }, 'failed', message)
  expect(await ledger.row(submission.id)).toMatchObject({ error: 'a\ufffdb\ufffdc', error_code: 'a\ufffdb\ufffdc' })
  expect((await ledger.events(submission.id)).at(-1)).toBe('sending -> failed: a\ufffdb\ufffdc')
})

describe('the event log', () => {
  test.each([
    ['cause', eventCauses],
    ['actor', eventActors],
  ])('accepts exactly the values of %s that the code knows', async (column, known) => {
    const { rows } = await ledger.pool.query<{ check: string }>(
      'select pg_get_constraintdef(oid) as check from pg_constraint where conname = $1',
      [`submission_event_${column}_check`],
    )
    const accepted = [...(rows[0]?.check ?? '').matchAll(/'(\w+)'::text/g)].map(([, value]) => value)
    expect(accepted.toSorted()).toEqual(known.toSorted())
  })

  test.each([
    `update outboxd.submission_event set cause = 'nothing happened'`,
    'delete from outboxd.submission_event',
  ])('is append-only: %s is refused', async (statement) => {
    await sending()
    await expect(ledger.pool.query(statement)).rejects.toThrow('append-only')
  })
})

describe('the database refuses impossible rows:', () => {
  test.each([
    ['a queued one without a body', 'queued', 'body = null'],
    ['a queued one that is never due', 'queued', 'due_at = null'],
    ['one on the wire without a claim', 'sending', 'claim_id = null'],
    ['one on the wire that is due', 'sending', 'due_at = now()'],
    ['one on the wire that is held', 'sending', 'held = true'],
    ['an accepted one without an id', 'accepted', 'transaction_id = null'],
    ['an accepted one with a claim', 'accepted', 'claim_id = id, instance_id = id'],
    ['an accepted one that is being probed for', 'accepted', 'probing = true'],
    ['an ended one without an end', 'failed', 'ended_at = null'],
    ['an ended one that is held', 'failed', 'held = true'],
    ['a state that does not exist', 'failed', `state = 'lost'`],
    ['one that is queued and ended', 'queued', 'ended_at = now()'],
  ])('%s', async (_, state, assignment) => {
    const submission = await sending()
    if (state === 'queued') await requeueUnsentClaim(ledger.pool, submission.claimId ?? '', 'test')
    if (state === 'accepted') await write(submission, acceptance)
    if (state === 'failed') await write(submission, { state: 'failed' })
    await expect(ledger.pool.query(`update outboxd.submission set ${assignment}`)).rejects.toThrow('check constraint')
  })
})
