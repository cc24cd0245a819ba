import { randomUUID } from 'node:crypto'
import { appendLogsToChain } from '../../src/ledger/audit/chain.ts'
import { readAuditEntries } from '../../src/ledger/audit/readAuditEntries.ts'
import { readOperatorLog } from '../../src/ledger/audit/readOperatorActs.ts'
import { insertCapturedRecords } from '../../src/ledger/capture.ts'
import { claimQueuedSubmissions } from '../../src/ledger/claims.ts'
import { readOrphanedSubmissions, readOwnOrphanedSubmissions } from '../../src/ledger/instances.ts'
import { releaseUnblockedRecords } from '../../src/ledger/keyOrder.ts'
import { shortReadPlannerOptions } from '../../src/ledger/ledgerSessions.ts'
import { readSubmissionDetail } from '../../src/ledger/operator/readSubmissionDetail.ts'
import { countFailureCauses } from '../../src/ledger/operator/search.ts'
import {
  anySubmissionFilter,
  countSubmissions,
  findSubmissions,
  type SubmissionFilter,
  selectSubmissions,
} from '../../src/ledger/operator/selectSubmissions.ts'
import { readPlannedPolls, recreateMissingPollJobs } from '../../src/ledger/queue.ts'
import { readDueReports } from '../../src/ledger/reports.ts'
import { pruneOldSubmissions, readPruneOverdueMs, runPruneRound } from '../../src/ledger/retention.ts'
import {
  countReplaysAndDiscardsOnce,
  readDaemonActivity,
  readLastEventId,
  readLedgerSnapshot,
  readProcessingTimes,
  readRequestDemand,
} from '../../src/ledger/snapshot.ts'
import { findStuckSubmissionProblems, readTransactionHolders } from '../../src/ledger/transactions.ts'
import { type CapturedRecord, states } from '../../src/model.ts'
import { LedgerMemory } from '../../src/outbox/ledgerMemory.ts'
import { beginTransaction, createPool, type Database } from '../../src/postgres/database.ts'
import { record } from '../../test/support/record.ts'
import { fillLedger, fillUnderWay } from './harness/fillLedger.ts'
import { startBenchPostgres } from './harness/postgres.ts'
import { readOptions } from './harness/readOptions.ts'
import { printTable, say, sayWhere, verdict } from './harness/report.ts'

const options = readOptions(
  'bench:ledger: whether a large ledger answers as fast as a small one, and whether its size stays the same for a year.',
  {
    submissions: { default: '1000000', help: 'submissions in the ledger' },
    days: { default: '365', help: 'length of the simulated year; 0 leaves it out' },
    daily: { default: '2000', help: 'records a day' },
  },
)
const submissions = Number(options.submissions)
const fastMs = 50
const rounds = 5
const retention = { days: 90, payloadDays: 30 }
const sized = ['submission', 'submission_event', 'pruned_submission', 'chain_block'] as const

sayWhere('bench:ledger')
say(
  `${submissions} submissions with four events each, made by SQL, their ends over 89 days; of these some 2,000 are under way or wait for a ` +
    `person. Each statement ${rounds} times after a first one, by the settings of who asks it; the median. Bound: ${fastMs} ms.`,
)

await using postgres = await startBenchPostgres({ max_wal_size: '4GB', shared_buffers: '512MB' })
const database = await postgres.createDatabase('ledger')
const onIdleError = () => {}
const daemon = createPool({
  url: database.url,
  name: 'daemon',
  connections: 2,
  onIdleError,
  prepares: true,
  settings: { ...shortReadPlannerOptions },
})
const command = createPool({ url: database.url, name: 'command', connections: 2, onIdleError })
await fillLedger(database, { first: 1, count: submissions, oldestDays: 89, newestDays: 0 })
await fillUnderWay(database)
say(`Size: ${await sizeOf('submission')} MB submissions, ${await sizeOf('submission_event')} MB events.`)
await chainBlocks(200)
await statements()
await year()
await Promise.all([daemon.end(), command.end()])

async function statements(): Promise<void> {
  const { rows } = await database.pool.query<{
    id: string
    transactionId: string
    key: string
    idempotencyKey: string
  }>(
    `select id, transaction_id as "transactionId", idempotency_key as "idempotencyKey" from outboxd.submission where outbox_id = $1`,
    [String(Math.floor(submissions / 2))],
  )
  const [{ id, transactionId, idempotencyKey } = { id: '', transactionId: '', idempotencyKey: '' }] = rows
  const lastEvent = await readLastEventId(database.pool)
  const seen = Array.from({ length: 2_000 }, (_, i) => ({
    outboxId: String(i + 1),
    stamp: 'at:12345678 x',
    createdAt: null,
  }))
  const forPerson: SubmissionFilter = { ...anySubmissionFilter, states: ['failed', 'rejected', 'uncertain'] }
  const list = (filter: Partial<SubmissionFilter>, order: 'longest' | 'newest' = 'longest') =>
    selectSubmissions(command, { ...forPerson, ...filter }, 50, order)
  const asked: [who: string, what: string, () => Promise<unknown>][] = [
    ['daemon', 'what is due, free and paused', () => readRequestDemand(daemon, 100)],
    ['daemon', 'the snapshot for the metrics', () => readLedgerSnapshot(daemon)],
    ['daemon', 'processing times', () => readProcessingTimes(daemon, 1_000)],
    ['daemon', 'planned polls', () => readPlannedPolls(daemon, 1_000)],
    ['daemon', 'reports due', () => readDueReports(daemon, { freshMax: 500, againMax: 100 })],
    ['daemon', 'orphans', () => readOrphanedSubmissions(daemon, randomUUID())],
    ['daemon', 'forgotten attempts', () => readOwnOrphanedSubmissions(daemon, randomUUID(), () => false)],
    [
      'daemon',
      'lost jobs (rolled back)',
      () => undone(daemon, (db) => recreateMissingPollJobs(db, { insert: async () => {} })),
    ],
    ['daemon', 'keys that wait (rolled back)', () => undone(daemon, (db) => releaseUnblockedRecords(db, 'continue'))],
    ['daemon', 'stuck transactions', () => findStuckSubmissionProblems(daemon, 86_400_000)],
    ['daemon', 'operators’ acts', () => countReplaysAndDiscardsOnce(daemon, lastEvent, randomUUID())],
    [
      'daemon',
      'whose a transaction’s id is',
      () => readTransactionHolders(daemon, [{ resource: 'data', transactionId }]),
    ],
    ['daemon', '2,000 rows of the outbox, whether known', () => new LedgerMemory(daemon, 1, '').findCapturedRows(seen)],
    ['daemon', 'how far pruning is behind', () => readPruneOverdueMs(daemon, retention)],
    [
      'daemon',
      'a batch of 100 pruned (rolled back)',
      () => undone(daemon, (db) => pruneOldSubmissions(db, { olderThanDays: 30, limit: 100 })),
    ],
    [
      'daemon',
      '100 new records taken in (rolled back)',
      () => undone(daemon, (db) => insertCapturedRecords(db, newRecords(), 'bench')),
    ],
    [
      'daemon',
      '32 records claimed (rolled back)',
      () =>
        undone(daemon, (db) =>
          claimQueuedSubmissions(db, { id: randomUUID(), instanceId: randomUUID(), limit: 32, who: 'bench' }),
        ),
    ],
    ['daemon', 'a block of the chain', () => chainBlocks(1)],
    ['status', 'activity', () => readDaemonActivity(command, 'continue')],
    ['status', 'snapshot', () => readLedgerSnapshot(command)],
    ['list', 'what waits for a person', () => list({})],
    ['list', '--by-cause', () => countFailureCauses(command, forPerson, 10_000)],
    ['list', '--state accepted', () => list({ states: ['accepted'] })],
    ['list', '--state queued', () => list({ states: ['queued'] })],
    ['list', '--state completed', () => list({ states: ['completed'] })],
    ['list', '--state completed --newest', () => list({ states: ['completed'] }, 'newest')],
    ['list', 'all states --key C4712', () => list({ states, key: 'C4712' })],
    ['list', 'all states --transaction ID', () => list({ states, transactionId })],
    ['list', 'all states --code E001', () => list({ states, code: 'E001' })],
    ['list', '--state completed --type none', () => list({ states: ['completed'], type: 'none' })],
    ['list', 'how many wait for a person', () => countSubmissions(command, forPerson, 10_000)],
    [
      'audit',
      'its first 100 lines',
      () =>
        firstOf(
          readAuditEntries(command, {
            sinceMs: null,
            untilMs: null,
            key: null,
            record: null,
            type: null,
            containing: null,
          }),
          100,
        ),
    ],
    [
      'audit',
      '--since 1h',
      () =>
        firstOf(
          readAuditEntries(command, {
            sinceMs: Date.now() - 3_600_000,
            untilMs: null,
            key: null,
            record: null,
            type: null,
            containing: null,
          }),
          100,
        ),
    ],
    [
      'audit',
      '--key C4712',
      () =>
        firstOf(
          readAuditEntries(command, {
            sinceMs: null,
            untilMs: null,
            key: 'C4712',
            record: null,
            type: null,
            containing: null,
          }),
          100,
        ),
    ],
    [
      'audit',
      'what persons did',
      () => readOperatorLog(command, { sinceMs: null, untilMs: null, who: null, key: null, record: null }, null, 50),
    ],
    ['show', 'by outbox id', () => findSubmissions(command, { kind: 'outbox', value: '4711' }, 50)],
    ['show', 'by its first digits', () => findSubmissions(command, { kind: 'range', from: id, to: id }, 50)],
    ['show', 'by its last digits', () => findSubmissions(command, { kind: 'ending', value: id.slice(-8) }, 50)],
    ['show', 'by transaction', () => findSubmissions(command, { kind: 'transaction', value: transactionId }, 50)],
    [
      'show',
      'by idempotency key',
      () => findSubmissions(command, { kind: 'idempotency-key', value: idempotencyKey }, 50),
    ],
    ['show', 'by key', () => findSubmissions(command, { kind: 'key', value: 'C4712' }, 50)],
    ['show', 'all of one', () => readSubmissionDetail(command, id, 'continue')],
  ]
  const lines: string[][] = []
  for (const [who, what, ask] of asked) {
    const ms = await medianMs(ask)
    lines.push([who, what, ms.toFixed(1), ms <= fastMs ? '' : `above ${fastMs} ms`])
  }
  printTable(['by', 'asks for', 'ms', ''], lines)
  say(verdict(lines.every(([, , , above]) => above === '')))
}

async function firstOf<T>(entries: AsyncIterable<T>, most: number): Promise<T[]> {
  const first: T[] = []
  for await (const entry of entries) if (first.push(entry) === most) break
  return first
}

/** Makes records with ids that the filled ledger does not have. */
function newRecords(): CapturedRecord[] {
  return Array.from({ length: 100 }, () => record({ outboxId: randomUUID(), key: 'C4712' }))
}

/** Only chained entries can be pruned. Chaining all of them would take longer than the rest of this benchmark. */
async function chainBlocks(most: number): Promise<void> {
  let blocks = 0
  await appendLogsToChain(database.pool, () => blocks++ < most)
}

async function medianMs(ask: () => Promise<unknown>): Promise<number> {
  await ask()
  const times: number[] = []
  for (let i = 0; i < rounds; i++) {
    const beganMs = performance.now()
    await ask()
    times.push(performance.now() - beganMs)
  }
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0
}

async function undone<T>(pool: typeof daemon, work: (db: Database) => Promise<T>): Promise<T> {
  await using transaction = await beginTransaction(pool)
  return work(transaction.db)
}

async function sizeOf(table: string): Promise<number> {
  const { rows } = await database.pool.query<{ mb: number }>(
    `select round(pg_total_relation_size(('outboxd.' || $1)::regclass) / 1e6)::int as mb`,
    [table],
  )
  return rows[0]?.mb ?? 0
}

/**
 * Simulates a year that ends now. Each day adds records and prunes with the daemon's own function; vacuum runs every
 * ten days. The records of a day and its retention limit lie as far in the past as the day.
 */
async function year(): Promise<void> {
  const [days, daily] = [Number(options.days), Number(options.daily)]
  if (days === 0) return
  await database.pool.query(
    'truncate outboxd.submission, outboxd.submission_event, outboxd.state_delta, outboxd.pruned_submission, outboxd.chain_block',
  )
  const lines: string[][] = []
  let pruned = 0
  let prunedMs = 0
  for (let day = 1; day <= days; day++) {
    const agoDays = days - day
    await fillLedger(database, {
      first: submissions + day * daily,
      count: daily,
      oldestDays: agoDays + 1,
      newestDays: agoDays,
    })
    await appendLogsToChain(database.pool, () => true)
    const beganMs = performance.now()
    let done = 0
    await runPruneRound(
      { ledger: daemon, outbox: { findExistingRows: async (ids) => new Set(ids) } },
      {
        retention: { days: agoDays + retention.days, payloadDays: agoDays + retention.payloadDays },
        turn: 'wait',
        goOn: () => true,
        onProgress: (soFar) => {
          done = soFar.submissions
        },
      },
    )
    if (done > 0) prunedMs += performance.now() - beganMs
    pruned += done
    if (day % 10 === 0) await database.pool.query('vacuum outboxd.submission, outboxd.submission_event')
    if (day % 30 === 0 || day === days)
      lines.push([String(day), ...(await Promise.all(sized.map(async (table) => String(await sizeOf(table)))))])
  }
  say(`A year of ${daily} records a day: contents for ${retention.payloadDays} days, the rest for ${retention.days}.`)
  printTable(['day', ...sized.map((table) => `${table}, MB`)], lines)
  say(`${Math.round((pruned / prunedMs) * 1000)} records pruned and as many emptied a second, pauses included.`)
}
