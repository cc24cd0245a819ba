import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { writeHeartbeat } from '../../src/ledger/instances.ts'
import { clearProblems, raiseProblems } from '../../src/ledger/problems.ts'
import { readLedgerSnapshot } from '../../src/ledger/snapshot.ts'
import { type Problem, problemKinds } from '../../src/model/problem.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { problemMessages } from '../../src/operations/problemMessages.ts'
import { sessionEndCost } from '../../src/postgres/locks.ts'
import { openFixture } from '../commands/fixture.ts'
import { openForFile } from '../support/openForFile.ts'
import { runStatus } from '../support/statusSays.ts'

const openProblem = (given: Pick<Problem, 'kind' | 'subject' | 'detail'> & Partial<Problem>): Problem => ({
  ...{ sinceMs: 0, seenMs: 0, times: 1, retryMs: null },
  ...given,
})

test('the message counts all problems of a kind, even if only some were read', () => {
  const row = openProblem({ kind: 'row_missing', subject: '7', detail: 'gone' })
  expect(problemMessages([row], { row_missing: 250 })).toEqual([expect.stringContaining('250 rows left the outbox')])
})

test('a condition that fails, because a column was renamed: the message says to fix the condition', () => {
  const detail = 'the condition of public.sale fails for all rows (42703: column n.state does not exist)'
  const type = openProblem({ kind: 'source_failing', subject: 'order', detail })
  expect(problemMessages([type])).toEqual([expect.stringContaining('or the condition of its documents')])
})

test('status and the runbook say what it costs to end a session in the same words', () => {
  const runbook = readFileSync('docs/run/runbook.md', 'utf8').replace(/\s+/g, ' ')
  expect(runbook).toContain(sessionEndCost)
  const locked = openProblem({ kind: 'row_locked', subject: '7', detail: 'pid 4711' })
  expect(problemMessages([locked])).toEqual([expect.stringContaining(sessionEndCost)])
})

test('from 1,000 rows in conflict, the message says "at least" and that nothing more is captured', () => {
  const row = openProblem({ kind: 'row_conflict', subject: '7', detail: 'differs', retryMs: 600_000 })
  const message = (count: number) => problemMessages([row], { row_conflict: count })
  expect(message(999)).toEqual([expect.stringMatching(/^999 rows of the outbox/)])
  expect(message(1_200)).toEqual([
    expect.stringMatching(
      /^At least 1200 rows of the outbox .* Until then nothing more is captured, unless most of them only wait for their outcome\.$/,
    ),
  ])
})

describe('in `status` and the metrics', () => {
  const fixture = openForFile(() => openFixture())
  const daemon = { id: randomUUID(), version: '1', host: 'erp-1', settings: {} }
  beforeEach(async () => {
    await fixture.reset()
    await writeHeartbeat(fixture.ledger.pool, daemon)
  })

  async function said(json = false): Promise<string> {
    const { context } = await runStatus(() => fixture.context(), { json })
    return context.printed()
  }

  async function counted(): Promise<Record<string, number>> {
    const metrics = createMetrics({ version: 'test', clock: systemClock })
    metrics.setSnapshot({ ...(await readLedgerSnapshot(fixture.ledger.pool)), pauses: [], outboxWaiting: 0 })
    const series = (await metrics.render()).matchAll(/^outboxd_problems\{kind="(\w+)"\} (\d+)$/gm)
    return Object.fromEntries([...series].flatMap(([, kind, n]) => (n === '0' ? [] : [[kind, Number(n)]])))
  }

  test.each(problemKinds)('status and metrics show the problem %s until it is cleared', async (kind) => {
    const { pool } = fixture.ledger
    const problem = { kind, detail: 'as it was seen', retryInMs: 60_000 }
    const [one, other] = ['one', 'two'].map((part) => `${part} of ${daemon.id.slice(0, 8)}`) as [string, string]
    await raiseProblems(pool, [
      { ...problem, subject: one },
      { ...problem, subject: other },
    ])
    const printed = await said()
    const [first = '', second] = printed.split('\n')
    expect(first).not.toContain('All is well')
    expect(first.length).toBeGreaterThan(30)
    expect(second).toBe('') // one sentence for both
    expect(printed).toContain(`problem         ${kind} ${one} since `)
    expect(printed).toMatch(/tried again at .*: as it was seen\n/)
    expect(JSON.parse(await said(true))).toMatchObject({
      well: false,
      problems: [
        { kind, subject: one, detail: 'as it was seen', times: 1 },
        { kind, subject: other },
      ],
    })
    expect(await counted()).toEqual({ [kind]: 2 })

    await clearProblems(pool, kind, null)
    expect(await said()).toMatch(/^All is well/)
    expect(await counted()).toEqual({})
  })

  test('a daemon’s own problem ends with that daemon', async () => {
    const { pool } = fixture.ledger
    const dead = { ...daemon, id: randomUUID() }
    const problem = { kind: 'log_failing', part: 'log', detail: 'ENOSPC', ageMs: 0 } as const
    await writeHeartbeat(pool, dead, { problems: [problem] })
    expect(await said()).toMatch(
      /^A daemon cannot write its log, so lines are lost \(log of \w{8}: ENOSPC\)\. Records go on\./,
    )
    await pool.query(`update outboxd.instance set beat_at = beat_at - interval '31 s' where id = $1`, [dead.id])
    expect(await said()).toMatch(/^All is well/)
    expect(await counted()).toEqual({})
  })
})

test('a thousand skipped rows: says that capture has stopped', () => {
  const row = openProblem({ kind: 'row_skipped', subject: '7', detail: 'the table refuses the mark (23514)' })
  expect(problemMessages([row], { row_skipped: 999 })[0]).not.toContain('no other row is captured')
  expect(problemMessages([row], { row_skipped: 1000 })[0]).toContain('Until they are fewer, no other row is captured.')
})
