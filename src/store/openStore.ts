import { uptime } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { type Chain, createChain } from '../ledger/audit/chain.ts'
import { createDayVerification, type PartVerdict } from '../ledger/audit/verifyChain.ts'
import { type CaptureLock, createCaptureLock } from '../ledger/capture.ts'
import { type Claims, createClaims } from '../ledger/claims.ts'
import { type ClockWatch, createClockWatch } from '../ledger/clockWatch.ts'
import { type ObservedTime, readDemand, readProcessingTimes } from '../ledger/demand.ts'
import { type HeartbeatStore, openHeartbeatStore } from '../ledger/heartbeatStore.ts'
import { createHistory, type HistoryLook } from '../ledger/history/createHistory.ts'
import { publishTypes } from '../ledger/instances.ts'
import { createMaintenance, type Maintenance } from '../ledger/maintenance.ts'
import { assertMigrated } from '../ledger/migrations.ts'
import { type InstanceLedger, type WrittenOutcomes, writeOutcomes, writeSteps } from '../ledger/outcomes.ts'
import { pauseBackoff } from '../ledger/pauses.ts'
import { clearProblems, raiseProblems, replaceProblems } from '../ledger/problems.ts'
import { type Pruned, type PruneEnd, prune } from '../ledger/prune.ts'
import { movePolls, openQueue, type Queue, readPlannedPolls } from '../ledger/queue.ts'
import { createOutboxReports, type OutboxReports } from '../ledger/reports.ts'
import { readPruneOverdueMs } from '../ledger/retention.ts'
import { ForeignOutbox } from '../ledger/servedOutbox.ts'
import { assertService, claimService, ForeignService, readLedgerName } from '../ledger/servedService.ts'
import { type Agreed, agreeOnBudget, isFileInForce, outboxFile, withdrawSettings } from '../ledger/settings.ts'
import { shortReads } from '../ledger/shortReads.ts'
import {
  compactCounts,
  countOperatorActions,
  type LedgerSnapshot,
  type OperatorActions,
  readLastEventId,
  readSnapshot,
} from '../ledger/snapshot.ts'
import { assertWhole } from '../ledger/structure.ts'
import type {
  CaptureTrouble,
  ClaimedRows,
  Demand,
  MovedPoll,
  OutcomeBatch,
  PlannedPoll,
  ProblemKind,
  RaisedProblem,
  RowStatus,
  RowsRequest,
  Telling,
} from '../model.ts'
import { readCaptureTrouble } from '../outbox/captureTrouble.ts'
import { claimRow, claimRows } from '../outbox/claim.ts'
import { type Comparison, comparisonBounds, createComparison } from '../outbox/comparison.ts'
import { OutboxTableUnusable } from '../outbox/inspectTable.ts'
import { ForeignLedger, type LedgerRegistration, openLedgerRegistration } from '../outbox/ledgerRegistration.ts'
import { createLockWatch } from '../outbox/lockedRows.ts'
import { createNamedRowSearch } from '../outbox/namedRow.ts'
import { Outbox } from '../outbox/outbox.ts'
import { describeTable, type OutboxTable, tableDigest } from '../outbox/outboxTable.ts'
import { findPresent } from '../outbox/rows.ts'
import { readTaken } from '../outbox/takenRows.ts'
import { tellRows } from '../outbox/tellRows.ts'
import { createPool, type Database, inTransaction, withDatabase } from '../postgres/database.ts'
import type { DatabaseAddress } from '../postgres/databaseAddress.ts'
import { type Listener, openListener } from '../postgres/listener.ts'
import { assertEncoding } from '../postgres/migrationSession.ts'
import { asText, connectionsMax, daemonSessions, ownNames } from '../postgres/sessionSettings.ts'

/** The databases, as the daemon uses them. */
export interface Store {
  outbox: Outbox
  /** As the functions of these names, for as long as this ledger serves the outbox and its outbox.yaml is in force. */
  claimRows(request: RowsRequest): Promise<ClaimedRows>
  claimRow(outboxId: string): Promise<ClaimedRows>
  tellRows<R extends RowStatus>(read: () => Promise<R[]>): Promise<Telling<R>>
  /** Whether the outbox could be read by another description, null: by its name alone. Changes nothing. */
  tryOutboxTable(table: OutboxTable | null): Promise<TableTrial>
  captureLock: CaptureLock
  /** Tells the other instances which record types this one has mapping files for: they leave it the rest. */
  publishTypes(types: readonly string[]): Promise<boolean>
  claims: Claims
  writeOutcomes(batch: OutcomeBatch): Promise<WrittenOutcomes>
  outboxReports: OutboxReports
  maintenance: Maintenance
  pulse: HeartbeatStore
  problems: Problems
  queue: Pick<Queue, 'touch' | 'supervise'>
  /** What the triggers on the ERP's tables could not do. */
  readCaptureTrouble(): Promise<CaptureTrouble[]>
  /** Looks for rows that no claim takes, as another session has them locked, and says which. */
  watchLocks(): Promise<void>
  /** Looks for rows that the ledger has lost, or the position has passed over, and says what it found. */
  compareLedger: Comparison['runOnce']
  /** Looks whether the ledger's history is as it was agreed to. */
  lookAtHistory(): Promise<HistoryLook>
  /** Deletes and empties what has been kept for long enough. */
  prune(goOn: () => boolean, onProgress: (pruned: Pruned) => void): Promise<PruneEnd>
  /** Chains what the logs have got since. */
  chain: Chain['runOnce']
  /** Verifies the last day of the chain, in parts. */
  verifyLastDay(goOn: () => boolean): Promise<PartVerdict>
  /** For how long the oldest that should have gone has been due, milliseconds. */
  readPruneOverdueMs(): Promise<number>
  readDemand(most: number): Promise<Demand>
  readProcessingTimes(limit: number): Promise<ObservedTime[]>
  readPlannedPolls(limit: number): Promise<PlannedPoll[]>
  movePolls(moves: readonly MovedPoll[]): Promise<void>
  readSnapshot(): Promise<LedgerSnapshot>
  compactCounts(): Promise<void>
  /** Whether each database answers. */
  readUp(): Promise<{ ledger: boolean; outbox: boolean }>
  /** What operators have ordered since this was last asked, where it is this instance's to count. */
  takeOperatorActs(): Promise<OperatorActions>
  /** Says again what this instance was given, and finds out what holds among all. */
  agreeOnSettings(): Promise<Agreed>
  clock: ClockWatch
  /** Announces new outbox rows until the store is closed. */
  listen(onNotice: () => void): void
  /** Says to those who insert rows whether we sleep, so that they need not announce what we find anyway. */
  sleepMark: Pick<Listener, 'mark' | 'isMarked' | 'unmark'>
  close(): Promise<void>
}

/** What came of trying a table: `unknown` where it could not be tried. */
export type TableTrial = { kind: 'fits' } | { kind: 'refused'; error: Error } | { kind: 'unknown' }

/** What is wrong, kept where `outboxd status` and every instance's metrics find it. */
export interface Problems {
  raise(problems: readonly RaisedProblem[]): Promise<void>
  /** @param subjects null: all of the kind */
  clear(kind: ProblemKind, subjects: readonly string[] | null): Promise<void>
  /** Says that exactly these of a kind stand. */
  replace(kind: ProblemKind, problems: readonly Omit<RaisedProblem, 'kind'>[]): Promise<void>
}

export interface DatabaseAddresses {
  outbox: DatabaseAddress
  ledger: DatabaseAddress
}

export interface StoreDeps {
  config: Config
  /** Where the databases are, by what is in them. */
  addresses: DatabaseAddresses
  /** As described, or its name. */
  outboxTable: OutboxTable | string
  /** What this instance was given that all should share, by the names of variables and files. */
  given(): Record<string, string>
  instance: { id: string; who: string; version: string; host: string }
  /** How long after a slot was taken its last request may arrive. */
  reachMs: number
  /** For how long the trial is one instance's. */
  leaseMs: number
  /** A connection in the background broke; it will be opened again. */
  onError(error: Error): void
}

/** A half-open connection never says goodbye: whoever closes the store waits for so long and no longer. */
const goodbyeMs = 3_000

/**
 * @throws DatabaseUnusable when the ledger's database cannot be reached or has not been migrated; OutboxTableUnusable and
 * ForeignOutbox where the outbox is there and cannot be used as it is, or is not the ledger's; ForeignService if the ledger belongs to
 * another service
 */
export async function openStore({
  config,
  addresses,
  outboxTable,
  given,
  instance,
  reachMs,
  leaseMs,
  onError,
}: StoreDeps): Promise<Store> {
  const pool = createPool({
    url: addresses.ledger,
    name: daemonSessions.work,
    connections: connectionsMax.work,
    onIdleError: onError,
    durable: true,
    prepares: true,
    // One row that somebody has locked holds up the statement that needs it for so long and no longer.
    settings: { ...ownNames, ...shortReads, lock_timeout: '3000', extra_float_digits: asText.extra_float_digits },
  })
  const outboxPool = createPool({
    url: addresses.outbox,
    name: daemonSessions.outbox,
    connections: connectionsMax.outbox,
    onIdleError: onError,
  })
  const pulse = openHeartbeatStore(addresses.ledger, instance, onError, (db) => assertService(db, config.service))
  let listener: Listener | undefined
  const digest = tableDigest(describeTable(outboxTable))
  const agreeOnSettings = () =>
    agreeOnBudget(pool, {
      instanceId: instance.id,
      host: instance.host,
      ...config.rateLimit,
      requestTimeoutMs: config.service.requestTimeoutMs,
      keyOnFailure: config.keyOnFailure,
      given: { ...given(), [outboxFile]: digest },
    })
  const isInForce = () => isFileInForce(pool, digest)
  let opened: Queue | undefined
  let registration: LedgerRegistration | undefined
  try {
    const queue = await withDatabase('STATE_DATABASE_URL', config.stateDatabaseUrl, async () => {
      await assertEncoding(pool, 'STATE_DATABASE_URL', config.stateDatabaseUrl)
      await assertMigrated(pool, config.stateDatabaseUrl)
      await assertWhole(pool, config.stateDatabaseUrl)
      await tellForeign(pool, async () => {
        await claimService(pool, config.service, instance.who)
        await assertService(pool, config.service)
      })
      await agreeOnSettings()
      return openQueue(addresses.ledger, onError)
    })
    opened = queue
    const outbox = new Outbox(outboxPool, outboxTable, config.payloadMaxBytes, pool)
    const asOurs = <T>(dispatch: () => Promise<T>) => tellForeign(pool, dispatch)
    const registered = openLedgerRegistration({
      ...{ address: addresses.outbox, table: outbox.qualified, onError },
      readLedgerName: () => readLedgerName(pool),
    })
    registration = registered
    /** Whether rows may be captured and written back here. */
    const mayServe = async () => {
      await asOurs(registered.hold)
      return isInForce()
    }
    const start = async () => {
      await registered.hold()
      await outbox.adopt(instance.who)
    }
    await asOurs(start).catch((error: unknown) => {
      // Whatever else it is may pass: the outbox's database may be away, and the ledger's work goes on without it.
      if (isRefusal(error)) throw error
    })
    const shared: InstanceLedger = { pool, queue, instance, keyOnFailure: config.keyOnFailure }
    const backoff = pauseBackoff(config)
    const history = createHistory({
      ...{ pool, who: instance.who, reachMs, standby: config.ledgerStandby },
      namedRows: createNamedRowSearch((after) => readTaken(outbox, after, true)),
    })
    const comparison = createComparison({ ledger: pool, outbox, who: instance.who, ...comparisonBounds })
    let lastEventId = await readLastEventId(pool)
    const takeOperatorActs = async () => {
      const { lastId, ...acts } = await countOperatorActions(pool, lastEventId, instance.id)
      lastEventId = lastId
      return acts
    }
    return {
      outbox,
      claimRows: async (request) => ((await mayServe()) ? asOurs(() => claimRows(outbox, request)) : noRows),
      claimRow: async (outboxId) => ((await mayServe()) ? claimRow(outbox, outboxId) : noRows),
      tellRows: async (read) => ((await mayServe()) ? asOurs(() => tellRows(outbox, read)) : { kind: 'busy' }),
      async tryOutboxTable(table) {
        const judge = async (): Promise<TableTrial> => {
          try {
            await new Outbox(outboxPool, table ?? config.outboxTable, config.payloadMaxBytes, pool).open()
            return { kind: 'fits' }
          } catch (error) {
            return isRefusal(error) ? { kind: 'refused', error } : untried
          }
        }
        return Promise.race([judge(), setTimeout(trialMaxMs, untried, { ref: false })])
      },
      queue,
      pulse,
      captureLock: createCaptureLock({ pool, who: instance.who, keyOnFailure: config.keyOnFailure, history }),
      publishTypes: (types) => publishTypes(pool, instance.id, types),
      claims: createClaims({ ...shared, history, leaseMs, reachMs }),
      writeOutcomes: (batch) => writeOutcomes({ ...shared, backoff }, batch),
      outboxReports: createOutboxReports(pool, history),
      maintenance: createMaintenance({
        pool,
        queue,
        instance,
        keyOnFailure: config.keyOnFailure,
        writeSteps: (db: Database, transitions) => writeSteps(shared, db, transitions),
      }),
      problems: {
        raise: (problems) => raiseProblems(pool, problems),
        clear: (kind, subjects) => clearProblems(pool, kind, subjects),
        replace: (kind, problems) => replaceProblems(pool, kind, problems),
      },
      readCaptureTrouble: () => readCaptureTrouble(outboxPool),
      watchLocks: createLockWatch(outbox, () => performance.now()),
      compareLedger: async (...asked) => ((await isInForce()) ? comparison.runOnce(...asked) : 'not-due'),
      prune: (goOn, onProgress) =>
        prune(
          { ledger: pool, outbox: { findPresent: (ids) => findPresent(outbox, ids) } },
          { retention: config.retention, turn: 'try', goOn, onProgress },
        ),
      lookAtHistory: history.look,
      chain: createChain(pool).runOnce,
      verifyLastDay: createDayVerification(pool),
      readPruneOverdueMs: () => readPruneOverdueMs(pool, config.retention),
      readDemand: (most) => readDemand(pool, most),
      readProcessingTimes: (limit) => readProcessingTimes(pool, limit),
      readPlannedPolls: (limit) => readPlannedPolls(pool, limit),
      movePolls: (moves) => inTransaction(pool, (db) => movePolls(db, queue, moves)),
      readSnapshot: () => readSnapshot(pool),
      compactCounts: () => compactCounts(pool),
      takeOperatorActs,
      async readUp() {
        const [ledger, outbox] = await Promise.all([isUp(pool), isUp(outboxPool)])
        return { ledger, outbox }
      },
      listen(onNotice) {
        const { channel, qualified: table } = outbox
        if (channel !== null) listener ??= openListener({ url: addresses.outbox, channel, table, onNotice, onError })
      },
      sleepMark: {
        mark: async () => (await listener?.mark()) ?? 'unavailable',
        isMarked: () => listener?.isMarked() ?? false,
        unmark: () => listener?.unmark(),
      },
      agreeOnSettings,
      clock: createClockWatch({ pool, host: instance.host, nowMs: Date.now, uptimeMs: () => uptime() * 1000 }),
      async close() {
        await Promise.race([
          withdrawSettings(pool, instance.id).catch(() => {}), // others find it silent
          setTimeout(goodbyeMs, undefined, { ref: false }),
        ])
        registered.close()
        const ends = [listener?.close(), queue.close(), pulse.close(), pool.end(), outboxPool.end()]
        await Promise.race([Promise.allSettled(ends), setTimeout(goodbyeMs, undefined, { ref: false })])
      },
    }
  } catch (error) {
    registration?.close()
    await Promise.allSettled([opened?.close(), pulse.close(), pool.end(), outboxPool.end()])
    throw error
  }
}

/** A table that somebody has locked may let nobody look for long: whoever has asked for a reload waits for the answer. */
const trialMaxMs = 5_000
const untried = { kind: 'unknown' } as const

/** What a daemon does not start with. */
const refusals = [ForeignOutbox, ForeignService, ForeignLedger, OutboxTableUnusable] as const

const isRefusal = (error: unknown): error is InstanceType<(typeof refusals)[number]> =>
  refusals.some((refusal) => error instanceof refusal)

/** What a daemon claims whose outbox.yaml is not in force. */
const noRows: ClaimedRows = {
  outboxIds: [],
  leftTypes: [],
  isRemembered: false,
  read: async () => [],
  mark: async () => [],
  async [Symbol.asyncDispose]() {},
}

const isUp = (db: Database): Promise<boolean> =>
  db.query('select').then(
    () => true,
    () => false,
  )

/** Runs `work`, and says where every command and instance finds it that the ledger belongs to another outbox or service, or another ledger serves the outbox. */
async function tellForeign<T>(ledger: Database, dispatch: () => Promise<T>): Promise<T> {
  try {
    return await dispatch()
  } catch (error) {
    if (error instanceof ForeignOutbox || error instanceof ForeignService || error instanceof ForeignLedger) {
      const { kind, subject, message: detail } = error
      await raiseProblems(ledger, [{ kind, subject, detail, retryInMs: null }])
    }
    throw error
  }
}
