import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Change, State, Submission } from '../../src/record.ts'
import type { Report } from '../../src/store/ledger/reports.ts'
import { createReportDesk, type ReportDesk } from '../../src/store/reportDesk.ts'
import { claim, type Ledger, openLedger, plentyOfSlots, settlement, transition } from '../support/ledger.ts'

let ledger: Ledger
let desk: ReportDesk
beforeAll(async () => {
  ledger = await openLedger()
  desk = createReportDesk(ledger.pool)
})
afterAll(() => ledger[Symbol.asyncDispose]())
beforeEach(async () => {
  await ledger.reset()
  await plentyOfSlots(ledger)
})

async function step(submission: Submission, change: Change): Promise<Submission> {
  await ledger.work().settle(settlement({ transitions: [transition(submission, change)] }))
  return ledger.read(submission.id)
}

async function sending(): Promise<Submission> {
  await ledger.capture([{}])
  return (await claim(ledger.work(), { submissions: 1 })).submissions[0] as Submission
}

const uncertain = async () => step(await sending(), { state: 'uncertain', error: 'lost', errorCode: 'E' })

/** An outbox that holds what was last reported. */
function outbox() {
  const rows = new Map<string, State>()
  return {
    rows,
    write: async (reports: readonly Report[]) => {
      for (const { outboxId, state } of reports) rows.set(outboxId, state)
    },
  }
}

test('what became of a record is delivered once', async () => {
  const submission = await uncertain()
  const delivered: Report[] = []
  expect(await desk.deliver(10, async (reports) => void delivered.push(...reports))).toBe(1)
  expect(delivered).toMatchObject([
    { submissionId: submission.id, outboxId: submission.outboxId, state: 'uncertain', errorCode: 'E', error: 'lost' },
  ])
  expect(await desk.deliver(10, () => Promise.reject(new Error('nothing is due')))).toBe(0)
})

test('the oldest come first, no more than asked for', async () => {
  const submissions = [await uncertain(), await uncertain(), await uncertain()]
  const { rows, write } = outbox()
  expect(await desk.deliver(2, write)).toBe(2)
  expect([...rows.keys()]).toEqual(submissions.slice(0, 2).map(({ outboxId }) => outboxId))
})

test('while the outbox is away the reports stay due, and the newest state is told when it is back', async () => {
  const submission = await uncertain()
  await expect(desk.deliver(10, () => Promise.reject(new Error('the ERP is away')))).rejects.toThrow('away')
  await step(submission, { state: 'discarded' })
  const { rows, write } = outbox()
  expect(await desk.deliver(10, write)).toBe(1)
  expect(rows.get(submission.outboxId)).toBe('discarded')
})

test('two instances never report at a time', async () => {
  await uncertain()
  let second = -1
  await desk.deliver(10, async () => {
    second = await createReportDesk(ledger.pool).deliver(10, () => Promise.reject(new Error('the turn is taken')))
  })
  expect(second).toBe(0)
})

test('a state that came while another was being delivered has its own report', async () => {
  const submission = await uncertain()
  await desk.deliver(10, async () => void (await step(submission, { state: 'discarded' })))
  const { rows, write } = outbox()
  expect(await desk.deliver(10, write)).toBe(1)
  expect(rows.get(submission.outboxId)).toBe('discarded')
})

test('a step of a submission never waits for the outbox', async () => {
  const submission = await uncertain()
  await desk.deliver(10, async () => {
    expect((await step(submission, { state: 'discarded' })).state).toBe('discarded')
  })
})

test('a reporter that lost its turn while it wrote makes the truth be told again', async () => {
  const submission = await uncertain()
  const { rows, write } = outbox()
  const stale = desk.deliver(10, async (reports) => {
    await ledger.pool.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 7163
         and database = (select oid from pg_database where datname = current_database())`,
    )
    await step(submission, { state: 'discarded' })
    await expect.poll(() => desk.deliver(10, write)).toBe(1) // another instance has the turn by now
    await write(reports) // and this one comes too late
  })
  await expect(stale).rejects.toThrow()
  expect(rows.get(submission.outboxId)).toBe('uncertain')
  await desk.deliver(10, write)
  expect(rows.get(submission.outboxId)).toBe('discarded')
})
