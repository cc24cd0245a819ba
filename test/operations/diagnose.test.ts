import { expect, test } from 'vitest'
import type { ReadOnlyCause } from '../../src/ledger/operator/readServer.ts'
import type { RequestCounts } from '../../src/ledger/requestCounts.ts'
import { type Problem, type ProblemKind, problemKinds } from '../../src/model/problem.ts'
import { isPauseOfBreaker, type PauseReason, pauseReasons } from '../../src/model/service.ts'
import type { State } from '../../src/model/submission.ts'
import type { HealthCondition } from '../../src/operations/diagnose.ts'
import * as diagnosis from '../../src/operations/diagnose.ts'
import { type CombinedStatus, estimateBacklog } from '../../src/operations/readStatus.ts'
import { backlogClause } from '../../src/operations/renderStatus.ts'
import type { RowsBeforeStart } from '../../src/outbox/startPosition.ts'
import type { LockingSession } from '../../src/postgres/locks.ts'

const nowMs = Date.UTC(2026, 10, 3, 12)
const none: Record<State, number> = {
  queued: 0,
  sending: 0,
  accepted: 0,
  completed: 0,
  failed: 0,
  rejected: 0,
  uncertain: 0,
  discarded: 0,
}
/** A status as the cases below give it. */
interface SystemStatus
  extends Pick<
    CombinedStatus,
    | 'submissions'
    | 'probing'
    | 'rateCapacity'
    | 'rateHeldBack'
    | 'firstDueMs'
    | 'firstPollDueMs'
    | 'unansweredSinceMs'
    | 'idleSinceMs'
    | 'unclaimedSinceMs'
    | 'isStandbyAwaited'
    | 'nowMs'
  > {
  outboxWaiting: number | null
  isOutboxAwaited: boolean
  outboxLockedBy: LockingSession[]
  instances: number
  aliveSinceMs: number | null
  silentDaemon: { lastHeardMs: number | null; heldUpBy: LockingSession[] } | null
  lastHour: RequestCounts
  readOnly: ReadOnlyCause | null
  pauses: { reason: PauseReason; sinceMs: number; untilMs?: number | null; detail: string }[]
  problems: Problem[]
  rowsBeforeStart: RowsBeforeStart | null
  fileDifferences: string
  oldestUnsentMs: number | null
  oldestWaitingMs: number | null
  oldestAcceptedMs: number | null
  reportsDue: number
  oldestReportDueMs: number | null
}

function factsOf(given: SystemStatus): CombinedStatus {
  const {
    outboxWaiting: waiting,
    outboxLockedBy: by,
    rowsBeforeStart,
    aliveSinceMs,
    silentDaemon,
    lastHour,
    ...same
  } = given
  const away = by.length > 0 ? { kind: 'locked', by } : { kind: given.isOutboxAwaited ? 'awaited' : 'unreadable' }
  const outbox = { waiting, oldestMs: given.oldestWaitingMs }
  const counted = { submit: lastHour, status: { requests: 0, failed: 0, answered: 0, slow: 0 } }
  const read = { kind: 'read', outbox, rowsBeforeStart, differences: given.fileDifferences }
  return {
    ...same,
    outbox: waiting === null ? away : read,
    instances: Array.from({ length: given.instances }, () => ({ startedMs: aliveSinceMs })),
    daemonConnected: silentDaemon !== null,
    lastSilentMs: silentDaemon?.lastHeardMs ?? null,
    heldUpBy: silentDaemon?.heldUpBy ?? [],
    recent: { lastHour: counted, last5Minutes: counted },
    standing: given.problems,
    oldestMs: given.oldestUnsentMs,
  } as unknown as CombinedStatus
}

const diagnose = (status: SystemStatus) => diagnosis.diagnose(factsOf(status))
const findBrokenConditions = (status: SystemStatus) => diagnosis.findUnmetHealthConditions(factsOf(status))

const calm: SystemStatus = {
  submissions: none,
  probing: 0,
  outboxWaiting: 0,
  isOutboxAwaited: false,
  outboxLockedBy: [],
  instances: 1,
  aliveSinceMs: nowMs - 3_600_000,
  silentDaemon: null,
  lastHour: { requests: 0, failed: 0, answered: 0, slow: 0 },
  readOnly: null,
  pauses: [],
  problems: [],
  rowsBeforeStart: null,
  fileDifferences: '',
  oldestUnsentMs: null,
  oldestWaitingMs: null,
  rateCapacity: 100,
  rateHeldBack: 0,
  firstDueMs: null,
  firstPollDueMs: null,
  idleSinceMs: null,
  unclaimedSinceMs: null,
  unansweredSinceMs: null,
  isStandbyAwaited: false,
  oldestAcceptedMs: null,
  reportsDue: 0,
  oldestReportDueMs: null,
  nowMs,
}

const first = (status: Partial<SystemStatus>) => diagnose({ ...calm, ...status })[0]

test('if nothing is wrong and nothing waits, all is well', () => {
  expect(first({})).toEqual({ isWell: true, message: 'All is well: everything is sent.' })
})

test('rows wait for over a minute and no cause is known: not all is well, and the message names the disk', () => {
  const untaken = { outboxWaiting: 43, oldestWaitingMs: nowMs - 90_000, idleSinceMs: nowMs - 80_000 }
  const { isWell, message } = first(untaken)
  expect({ isWell, message }).toMatchObject({ isWell: false, message: expect.stringMatching(/^43 rows .*disk.*check/) })
  for (const why of [{ idleSinceMs: null }, { oldestWaitingMs: nowMs - 30_000 }, { oldestWaitingMs: null }])
    expect(first({ ...untaken, ...why }).isWell).toBe(true)
  expect(first({ ...untaken, submissions: { ...none, uncertain: 1 } }).message).toContain('needs attention')
})

test('due records that no daemon claims are not well, also beside records that need attention, unless a pause holds them', () => {
  const unclaimed = {
    firstDueMs: nowMs - 120_000,
    unclaimedSinceMs: nowMs - 90_000,
    submissions: { ...none, failed: 1 },
  }
  const said =
    'Nothing is sent: captured records have been due for up to 2 min and requests are free, but no daemon has claimed a record for 1 min 30 s. Look at the daemon’s log (full disk? missing permission?), and run `outboxd check`.'
  expect(first(unclaimed).message).toBe(said)
  for (const why of [
    { firstDueMs: null },
    { firstDueMs: nowMs - 30_000 },
    { firstDueMs: nowMs + 300_000 },
    { unclaimedSinceMs: null },
    { instances: 0, aliveSinceMs: null },
    { pauses: [pause('unavailable')] },
    { problems: [openProblem('host_failing')] },
  ])
    expect(diagnose({ ...calm, ...unclaimed, ...why }).map(({ message }) => message)).not.toContain(said)
})

test('due polls without an answer in the ledger are not well, unless a pause holds them', () => {
  const unpolled = { firstPollDueMs: nowMs - 120_000, unansweredSinceMs: nowMs - 90_000 }
  const said =
    'No outcome is recorded: polls have been due for up to 2 min and requests are free, but no daemon has written an answer to the ledger for 1 min 30 s. Look at the daemon’s log (full disk? missing permission?), and run `outboxd check`.'
  expect(first(unpolled).message).toBe(said)
  for (const why of [
    { firstPollDueMs: null },
    { firstPollDueMs: nowMs - 30_000 },
    { unansweredSinceMs: null },
    { instances: 0, aliveSinceMs: null },
    { pauses: [pause('unavailable')] },
    { problems: [openProblem('host_failing')] },
  ])
    expect(diagnose({ ...calm, ...unpolled, ...why }).map(({ message }) => message)).not.toContain(said)
})

test('due records that no daemon claims are not well if only one of two daemons has a host that lacks something', () => {
  const due = { firstDueMs: nowMs - 120_000, unclaimedSinceMs: nowMs - 90_000 }
  const broken = findBrokenConditions({ ...calm, ...due, instances: 2, problems: [openProblem('host_failing')] })
  expect(broken.map(({ condition }) => condition)).toContain('due records are claimed')
})

const openProblem = (kind: ProblemKind): Problem => ({
  kind,
  subject: 'x',
  detail: 'as it was seen',
  sinceMs: nowMs,
  seenMs: nowMs,
  times: 1,
  retryMs: null,
})
const pause = (reason: PauseReason) => ({ reason, sinceMs: nowMs - 60_000, detail: '' })

/**
 * For each condition of "All is well": statuses in which only that condition is false. A condition without a row does
 * not compile.
 */
const onlyFalse: Record<HealthCondition, readonly Partial<SystemStatus>[]> = {
  'no pause for the ledger’s history': [{ pauses: [pause('history')] }, { pauses: [pause('standby')] }],
  'the outbox can be read': [
    { outboxWaiting: null },
    { outboxWaiting: null, isOutboxAwaited: true },
    {
      outboxWaiting: null,
      outboxLockedBy: [
        { pid: 7, application: 'erp', state: 'idle in transaction', statement: 'UPDATE', openForMs: 9_000 },
      ],
    },
  ],
  'the database can be written': [{ readOnly: 'standby' }, { readOnly: 'standby', instances: 0, aliveSinceMs: null }],
  'a daemon lives': [
    { instances: 0, aliveSinceMs: null },
    { instances: 0, aliveSinceMs: null, silentDaemon: { lastHeardMs: null, heldUpBy: [] } },
  ],
  'no other pause': pauseReasons
    .filter((reason) => reason !== 'history' && reason !== 'standby')
    .map((reason) => ({ pauses: [pause(reason)] })),
  'the service meets its targets': [
    { lastHour: { requests: 10, failed: 10, answered: 10, slow: 0 } },
    { lastHour: { requests: 10, failed: 0, answered: 10, slow: 10 } },
  ],
  'no other problem is open': problemKinds.map((kind) => ({ problems: [openProblem(kind)] })),
  'waiting rows are counted as the daemons see them': [{ fileDifferences: 'outbox.yaml differs' }],
  'no other client spends from the budget': [{ rateHeldBack: 71 }],
  'no record needs attention': (['uncertain', 'failed', 'rejected'] as const).map((state) => ({
    submissions: { ...none, [state]: 1 },
  })),
  'no record is late': [{ oldestUnsentMs: nowMs - 3_600_001 }, { oldestAcceptedMs: nowMs - 3_600_001 }],
  'outcomes are written back in time': [{ reportsDue: 1, oldestReportDueMs: nowMs - 300_001 }],
  'no COMMIT hangs': [{ isStandbyAwaited: true }],
  'due records are claimed': [{ firstDueMs: nowMs - 60_001, unclaimedSinceMs: nowMs - 60_001 }],
  'due polls are made': [{ firstPollDueMs: nowMs - 60_001, unansweredSinceMs: nowMs - 60_001 }],
  'waiting rows are captured': [{ outboxWaiting: 1, oldestWaitingMs: nowMs - 60_001, idleSinceMs: nowMs - 60_001 }],
}

test.each(
  Object.entries(onlyFalse).flatMap(([condition, statuses]) => statuses.map((status) => [condition, status] as const)),
)('not all is well if only "%s" is false: %j', (condition, status) => {
  const broken = findBrokenConditions({ ...calm, ...status })
  expect(broken.map((each) => each.condition)).toEqual([condition])
  expect(diagnose({ ...calm, ...status })).toEqual(
    broken.flatMap(({ condition, messages }) => messages.map((message) => ({ isWell: false, message, condition }))),
  )
})

test('all is well while records are queued, on the wire or accepted, and rows wait', () => {
  const submissions = { ...none, queued: 2, sending: 4, accepted: 3 }
  const { isWell, message } = first({ submissions, probing: 1, outboxWaiting: 10 })
  expect(isWell).toBe(true)
  expect(message).toBe(
    'All is well: 12 records to send, 3 on the wire, 3 being processed by the service, 1 uncertain (outboxd asks the service).',
  )
})

test.each([
  [{ instances: 0 }, 'outboxd run'],
  [{ instances: 0, readOnly: 'standby' }, 'the primary'],
  [{ outboxWaiting: null }, 'outboxd check'],
  [{ pauses: [{ reason: 'unauthorized', sinceMs: nowMs - 720_000, detail: '' }] }, 'outboxd check'],
  [{ pauses: [{ reason: 'operator', sinceMs: nowMs - 720_000, detail: '' }] }, 'outboxd resume'],
  [{ submissions: { ...none, uncertain: 1, failed: 9 } }, '`outboxd list` shows them'],
  [{ submissions: { ...none, uncertain: 1, failed: 10 } }, 'outboxd list --by-cause'],
  [{ oldestUnsentMs: nowMs - 7_200_000 }, 'outboxd list --state queued'],
  [{ oldestAcceptedMs: nowMs - 7_200_000 }, 'outboxd list --state sending,accepted'],
] as const satisfies [Partial<SystemStatus>, string][])('%j names the command that explains: %s', (status, command) => {
  expect(first(status).isWell).toBe(false)
  expect(first(status).message).toContain(command)
})

test('the most urgent message comes first, and the others follow', () => {
  const submissions = { ...none, rejected: 1 }
  const all = diagnose({
    ...calm,
    instances: 0,
    submissions,
    pauses: [{ reason: 'throttled', sinceMs: 0, detail: '' }],
  })
  expect(all).toHaveLength(3)
  expect(all[0].message).toContain('No daemon')
  expect(all[2]?.message).toBe('1 record needs attention (1 rejected). `outboxd list` shows them.')
})

test('an open problem of any kind means that not all is well, and problems of one kind share one message', () => {
  const problem = (kind: ProblemKind, subject: string): Problem => ({
    kind,
    subject,
    detail: 'as it was seen',
    sinceMs: nowMs,
    seenMs: nowMs,
    times: 1,
    retryMs: null,
  })
  for (const kind of problemKinds) {
    const all = diagnose({ ...calm, problems: [problem(kind, 'a'), problem(kind, 'b')] })
    expect(all).toHaveLength(1)
    expect(all[0].isWell).toBe(false)
  }
  const unknown = problem('of a newer version' as ProblemKind, 'x')
  expect(diagnose({ ...calm, problems: [unknown] })[0].message).toBe('of a newer version: as it was seen')
})

test('the estimate counts one request for each record and its polls, at the rate limit', () => {
  const limit = { capacity: 100, windowMs: 60_000, lastDueInMs: 0 }
  const estimate = estimateBacklog({ toSend: 1_000, tracked: 0, pollsPerRecord: 1, ...limit })
  expect(estimate).toEqual({ records: 1_000, pollsPerRecord: 1, durationMs: 20 * 60_000 })
  expect(estimateBacklog({ toSend: 0, tracked: 100, pollsPerRecord: 2, ...limit }).durationMs).toBe(120_000)
  expect(estimateBacklog({ toSend: 100, tracked: 0, pollsPerRecord: null, ...limit }).pollsPerRecord).toBe(1)
})

test('the first message counts rows that wait before the start position and are ignored', () => {
  const rowsBeforeStart = (rows: number) => ({ rowsBeforeStart: { rows, oldest: null } })
  expect(first(rowsBeforeStart(2))).toEqual({
    isWell: true,
    message: 'All is well: everything is sent. 2 rows before the start position wait, and will never be sent.',
  })
  expect(first({ ...rowsBeforeStart(1), outboxWaiting: 3 }).message).toBe(
    'All is well: 3 records to send. 1 row before the start position waits, and will never be sent.',
  )
  expect(first(rowsBeforeStart(10_000)).message).toContain('10000 rows or more before')
  expect(first(rowsBeforeStart(0)).message).toBe('All is well: everything is sent.')
})

test('the message about a failing loop, broken files or broken credentials contains the cause', () => {
  for (const kind of ['loop_failing', 'credentials_broken'] as const) {
    const { message } = first({ problems: [{ ...openProblem(kind), subject: 'report', detail: 'permission denied' }] })
    expect(message).toContain('report: permission denied')
    expect(message).not.toContain('below')
  }
  expect(first({ pauses: [pause('history')] }).message).not.toContain('next sentence')
})

test('the message about a pause says since when it stands', () => {
  expect(first({ pauses: [{ ...pause('operator'), sinceMs: nowMs - 6_000 }] }).message).toMatch(
    /^Nothing is sent: paused \(operator\) since 2026-11-03 11:59:54Z \(6 s ago\)\. /,
  )
})

test('a backlog takes at least 1 s, and gets no end time while nothing is sent', () => {
  const moving = {
    backlog: { records: 1, durationMs: 20, pollsPerRecord: 1 },
    backlogStandsUntil: null,
    mayRowsWaitLonger: false,
    throughAtMs: nowMs,
    pauses: [],
  }
  expect(backlogClause(moving)).toMatch(/^sent in about 1 s, at 2026-\d\d-\d\d 12:00Z \(/)
  const still = { ...moving, backlogStandsUntil: 'a daemon starts', throughAtMs: null }
  expect(backlogClause(still)).toMatch(/^sent in about 1 s after a daemon starts \(estimated/)
})

test('a COMMIT without an answer: the message names the connection to the database first, then its disk', () => {
  const { message } = first({ problems: [{ ...openProblem('claim_lost'), subject: 'a claim' }] })
  expect(message).toMatch(/Check the connection to it \(a pooler, the network\), then its disk/)
})

test('a breaker that waits for a person says which command goes on', () => {
  const said = (reason: PauseReason, untilMs: number | null) =>
    first({ pauses: [{ reason, sinceMs: nowMs, detail: '', untilMs }] }).message
  expect(said('unreachable', nowMs + 1_000)).toMatch(/The service cannot be reached/)
  for (const reason of pauseReasons.filter(isPauseOfBreaker))
    expect(said(reason, null), reason).toMatch(/left in doubt .*`outboxd resume --all`/)
  expect(said('operator', null)).toMatch(/`outboxd resume` ends/)
})

test('of several pauses only the first says that nothing is sent', () => {
  const pauses = (['operator', 'history', 'unreachable'] as const).map((reason) => ({
    reason,
    sinceMs: nowMs,
    detail: '',
  }))
  const begins = diagnose({ ...calm, pauses }).map(({ message }) => message.replace(/ since .*/, ''))
  expect(begins.slice(0, 3)).toEqual(['Nothing is sent: paused (history)', 'Paused (operator)', 'Paused (unreachable)'])
})
