import { expect, test } from 'vitest'
import { type ReportDeps, reportOnce } from '../../src/report/report.ts'

type Status = Parameters<ReportDeps['write']>[0][number]

const report = (outboxId: string): Status => ({
  outboxId,
  state: 'completed',
  transactionId: 'tx',
  errorCode: null,
  error: null,
})

/** A desk with so many reports, and an outbox that takes them. */
function setup(due: number) {
  const written: Status[][] = []
  return {
    written,
    run: (write: ReportDeps['write'] = async (statuses) => void written.push([...statuses])) =>
      reportOnce({
        async deliver(limit, deliver) {
          const reports = Array.from({ length: Math.min(limit, due) }, (_, i) => report(String(i)))
          await deliver(reports)
          return reports.length
        },
        write,
      }),
  }
}

test('what is due is written to the outbox rows in one batch', async () => {
  const { run, written } = setup(3)
  expect(await run()).toBe(false)
  expect(written.map((batch) => batch.map(({ outboxId }) => outboxId))).toEqual([['0', '1', '2']])
})

test('a full batch says that there may be more', async () => {
  const { run, written } = setup(1_000)
  expect(await run()).toBe(true)
  expect(written.map((batch) => batch.length)).toEqual([500])
})

test('an outbox that is away is the desk’s to hear of, so that the reports stay due', async () => {
  await expect(setup(1).run(() => Promise.reject(new Error('the ERP is away')))).rejects.toThrow('away')
})
