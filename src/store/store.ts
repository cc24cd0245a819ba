import type { Config } from '../config.ts'
import { fitSlots, type PauseLadders } from './budget.ts'
import { createPool, type Database, withDatabase } from './database.ts'
import { type CaptureTurns, createCaptureTurns } from './ledger/captureTurn.ts'
import { type Demand, type ObservedTime, readDemand, readProcessingTimes } from './ledger/demand.ts'
import { type Listener, openListener } from './listener.ts'
import { assertMigrated } from './migrate.ts'
import { type Outbox, openOutbox } from './outbox.ts'
import { openQueue, type Queue } from './queue.ts'
import { createReportDesk, type ReportDesk } from './reportDesk.ts'
import { compactCounts, countReplays, type LedgerSnapshot, readLastEventId, readSnapshot } from './snapshot.ts'
import { createUpkeep, type Upkeep } from './upkeep.ts'
import { createWork, type Work, writeSteps } from './work.ts'

/** The databases, as the daemon uses them. */
export interface Store {
  outbox: Outbox
  captureTurns: CaptureTurns
  work: Work
  reportDesk: ReportDesk
  upkeep: Upkeep
  queue: Pick<Queue, 'touch'>
  readDemand(most: number): Promise<Demand>
  readProcessingTimes(limit: number): Promise<ObservedTime[]>
  readSnapshot(): Promise<LedgerSnapshot>
  compactCounts(): Promise<void>
  /** How many replays operators have ordered since this was last asked. */
  takeReplays(): Promise<number>
  /** Announces new outbox rows until the store is closed. */
  listen(onNotice: () => void): void
  close(): Promise<void>
}

export interface StoreDeps {
  config: Config
  instance: { id: string; who: string; version: string; host: string }
  leaseMs: number
  /** Longer than any request can be in hand. */
  overdueMs: number
  /** A connection in the background broke; it will be opened again. */
  onError(error: Error): void
}

/** @throws DatabaseUnusable when the ledger's database cannot be reached or has not been migrated */
export async function openStore({ config, instance, leaseMs, overdueMs, onError }: StoreDeps): Promise<Store> {
  const pool = createPool({ url: config.stateDatabaseUrl, name: 'outboxd', connections: 8, onIdleError: onError })
  const outboxPool = createPool({
    url: config.databaseUrl,
    name: 'outboxd outbox',
    connections: 4,
    onIdleError: onError,
  })
  const listeners: Listener[] = []
  try {
    const queue = await withDatabase('STATE_DATABASE_URL', config.stateDatabaseUrl, async () => {
      await assertMigrated(pool, config.stateDatabaseUrl)
      await fitSlots(pool, config.rateLimit.requests)
      return openQueue(config.stateDatabaseUrl, onError)
    })
    const outbox = openOutbox(outboxPool, config.outboxTable, config.payloadMaxBytes)
    const shared = { pool, queue, instance, keyOnFailure: config.keyOnFailure }
    let lastEventId = await readLastEventId(pool)
    const takeReplays = async () => {
      const { replays, lastId } = await countReplays(pool, lastEventId)
      lastEventId = lastId
      return replays
    }
    return {
      outbox,
      queue,
      captureTurns: createCaptureTurns({ pool, who: instance.who, keyOnFailure: config.keyOnFailure }),
      work: createWork({ ...shared, leaseMs, windowMs: config.rateLimit.windowMs, ladders: pauseLadders(config) }),
      reportDesk: createReportDesk(pool),
      upkeep: createUpkeep({
        pool,
        queue,
        instance,
        overdueMs,
        writeSteps: (db: Database, transitions) => writeSteps(shared, db, transitions),
      }),
      readDemand: (most) => readDemand(pool, most),
      readProcessingTimes: (limit) => readProcessingTimes(pool, limit),
      readSnapshot: () => readSnapshot(pool),
      compactCounts: () => compactCounts(pool),
      takeReplays,
      listen(onNotice) {
        const { channel } = outbox
        if (channel !== null) listeners.push(openListener({ url: config.databaseUrl, channel, onNotice, onError }))
      },
      async close() {
        await Promise.allSettled([...listeners.map((listener) => listener.close()), queue.close()])
        await Promise.allSettled([pool.end(), outboxPool.end()])
      },
    }
  } catch (error) {
    await Promise.allSettled([pool.end(), outboxPool.end()])
    throw error
  }
}

/** design.md, section 6. */
function pauseLadders({ unavailablePauseMs, unauthorizedPauseMs }: Config): PauseLadders {
  return {
    throttled: [1_000, 2_000, 4_000, 8_000],
    unavailable: [unavailablePauseMs],
    unauthorized: [unauthorizedPauseMs],
    unreachable: [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000],
  }
}
