import { expect, test } from 'vitest'
import { type ReportDeps, writeOutcomesBackOnce } from '../../../src/daemon/report/report.ts'

type Due = Awaited<ReturnType<ReportDeps['readDue']>>['fresh'][number]
type Tell = ReportDeps['writeBack']
type Told = Parameters<ReportDeps['writeResults']>[0][number]

const dueOf = (count: number): Due[] => Array.from({ length: count }, (_, i) => ({ submissionId: `${i}`, failures: 0 }))

const reportOf = (due: Due) => ({
  ...due,
  misses: 0,
  outboxId: `row ${due.submissionId}`,
  revision: 1,
  state: 'completed' as const,
  transactionId: 'tx',
  errorCode: null,
  error: null,
})

const takesAll: Tell = async (due) => ({
  kind: 'done',
  rows: due.map((each) => ({ status: reportOf(each), kind: 'written' })),
})

/** A table that refuses each batch with one of these rows. */
const refuses =
  (bad: readonly number[]): Tell =>
  async (due) => {
    if (!due.some(({ submissionId }) => bad.includes(Number(submissionId)))) return takesAll(due)
    return { kind: 'refused', statuses: due.map(reportOf), code: '23514', message: 'a check', why: 'row' }
  }

/** Reports that are due, and a table that takes them as `writeBack` says; each batch takes `tellMs`. */
function setup(due: { fresh?: Due[]; again?: Due[] }, writeBack: Tell = takesAll, tellMs = 0) {
  const told: Due[][] = []
  const written: Told[] = []
  let nowMs = 0
  const run = (rowsAtOnce?: number) =>
    writeOutcomesBackOnce(
      {
        stopwatch: () => {
          const startMs = nowMs
          return () => nowMs - startMs
        },
        readDue: async () => ({ fresh: [], again: [], ...due }),
        writeBack(part) {
          told.push([...part])
          nowMs += tellMs
          return writeBack(part)
        },
        writeResults: async (results) => void written.push(...results),
      },
      rowsAtOnce,
    )
  return { run, told, written }
}

test('due reports are written in one batch, and those put off in a batch after it', async () => {
  const { run, told, written } = setup({ fresh: dueOf(3), again: [{ submissionId: 'late', failures: 2 }] })
  expect((await run()).hasMore).toBe(false)
  expect(told.map((part) => part.map(({ submissionId }) => submissionId))).toEqual([['0', '1', '2'], ['late']])
  expect(written.map(({ againInMs }) => againInMs)).toEqual([null, null, null, null])
})

test('a full batch means that more may be due', async () => {
  expect((await setup({ fresh: dueOf(500) }).run()).hasMore).toBe(true)
})

test('refused rows are found among the others, which are written', async () => {
  const { run, told, written } = setup({ fresh: dueOf(500) }, refuses([0, 123, 499]))
  await run()
  const putOff = written.filter(({ againInMs }) => againInMs !== null)
  expect(putOff.map(({ problem }) => problem)).toMatchObject(
    [0, 123, 499].map((n) => ({ kind: 'report_refused', subject: `row ${n}`, retryInMs: 5_000 })),
  )
  expect(written).toHaveLength(500)
  expect(told.length).toBeLessThan(90)
})

test('the search for refused rows stops in time, and untried reports stay due', async () => {
  const { run, told, written } = setup({ fresh: dueOf(500) }, refuses(dueOf(500).map((_, i) => i)), 1_000)
  await run()
  expect(told).toHaveLength(10)
  expect(written.map(({ report }) => report.submissionId)).toEqual(['0', '1', '2', '3', '4', '5'])
})

test('a refused batch that takes longer than a round is still split, and its other rows are written', async () => {
  let left = dueOf(500)
  for (let round = 0; round < 20; round++) {
    let nowMs = 0
    await writeOutcomesBackOnce({
      stopwatch: () => () => nowMs,
      readDue: async () => ({ fresh: left, again: [] }),
      writeBack(part) {
        nowMs += 24 * part.length
        return refuses([499])(part)
      },
      async writeResults(told) {
        const ids = new Set(told.map(({ report }) => report.submissionId))
        left = left.filter(({ submissionId }) => !ids.has(submissionId))
      },
    })
  }
  expect(left).toHaveLength(0)
})

test('a report is given up when its row was missing for a day, but not after as many locks', async () => {
  const missing = (misses: number, state: 'completed' | 'accepted' = 'completed') =>
    setup({ fresh: [{ submissionId: 'gone', failures: 24 }] }, async ([due]) => ({
      kind: 'done',
      rows: due === undefined ? [] : [{ status: { ...reportOf(due), misses, state }, kind: 'gone' }],
    }))
  const told = async ({ run, written }: ReturnType<typeof missing>) => {
    await run()
    return written.map(({ againInMs, problem }) => [againInMs, problem?.kind])
  }
  expect(await told(missing(0))).toEqual([[3_600_000, 'row_missing']])
  expect(await told(missing(24))).toEqual([[null, undefined]])
  // Only the end of a record raises the problem. An accepted record has a later report.
  expect(await told(missing(0, 'accepted'))).toEqual([[null, undefined]])
})

test('while another instance writes back, this one leaves the reports alone', async () => {
  const { run, written } = setup({ fresh: dueOf(500) }, async () => ({ kind: 'busy' }))
  expect((await run()).hasMore).toBe(false)
  expect(written).toEqual([])
})

test('if the outbox is away, the round fails and the reports stay due', async () => {
  const { run, written } = setup({ fresh: dueOf(1) }, () => Promise.reject(new Error('the ERP is away')))
  await expect(run()).rejects.toThrow('away')
  expect(written).toEqual([])
})

/** A table whose statements take 300 ms a row, and are ended after 10 s. */
const takes300MsEach =
  (spend: (ms: number) => void): Tell =>
  async (due) => {
    spend(Math.min(10_000, 300 * due.length))
    return 300 * due.length > 10_000 ? { kind: 'slow', statuses: due.map(reportOf) } : takesAll(due)
  }

test('a slow table gets half as many rows at a time until it takes them, and no more in later rounds', async () => {
  let tellMs = 0
  const slow = takes300MsEach((ms) => {
    tellMs = ms
  })
  let left = dueOf(200)
  let rowsAtOnce: number | undefined
  let rounds = 0
  let failures = 0
  for (; left.length > 0; rounds++) {
    let nowMs = 0
    const round = await writeOutcomesBackOnce(
      {
        stopwatch: () => () => nowMs,
        readDue: async () => ({ fresh: left, again: [] }),
        async writeBack(part) {
          const telling = await slow(part)
          nowMs += tellMs
          if (telling.kind === 'slow') failures += 1
          return telling
        },
        async writeResults(told) {
          expect(told.every(({ againInMs, problem }) => againInMs === null && problem === null)).toBe(true)
          left = left.slice(told.length)
        },
      },
      rowsAtOnce,
    )
    rowsAtOnce = round.rowsAtOnce
    expect(round.hasMore).toBe(left.length > 0)
  }
  expect({ rounds, failures }).toEqual({ rounds: 7, failures: 3 })
})

test('a table that is fast again gets more rows at a time, step by step', async () => {
  expect((await setup({ fresh: dueOf(100) }).run(20)).rowsAtOnce).toBe(30)
})

test('a row whose update by itself takes too long is reported as refused, not as locked', async () => {
  const { run, written } = setup({ fresh: dueOf(1) }, async (due) => ({ kind: 'slow', statuses: due.map(reportOf) }))
  await run()
  expect(written[0]?.problem).toMatchObject({ kind: 'report_refused', detail: expect.stringContaining('triggers') })
})
