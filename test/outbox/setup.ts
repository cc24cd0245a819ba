import pg from 'pg'
import { expect, onTestFinished } from 'vitest'
import type { OutboxRecord, RowOutcome, RowStatus, RowsRequest } from '../../src/model/outbox.ts'
import { type ClaimedRows, claimRow, claimRows, markRows, readClaimedRows } from '../../src/outbox/claimRows.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { parseOutboxFile } from '../../src/outbox/readOutboxFile.ts'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { beginTransaction, type Database } from '../../src/postgres/database.ts'
import { createDatabase } from '../support/database.ts'
import { openCaptureLock } from '../support/ledger.ts'
import { writeBackRows } from './writeBackRows.ts'

export interface Setup {
  url: string
  pool: pg.Pool
  outbox: Outbox
  /** Claims rows, stores them in the ledger and marks them, like the daemon. @returns the captured ids in order */
  capture(limit?: number, exceptKeys?: readonly string[]): Promise<string[]>
  /** Like `capture`, but returns the records. */
  captureRecords(limit?: number, exceptKeys?: readonly string[]): Promise<OutboxRecord[]>
  /** Writes these states back to their rows. */
  report(...statuses: RowStatus[]): Promise<RowOutcome[]>
  /** Opens a separate connection, for a transaction. */
  connect(): Promise<pg.Client>
  /** The same table and ledger, as a daemon with a different outbox.yaml uses them. */
  describedAs(yaml: string): Pick<Setup, 'outbox' | 'capture' | 'captureRecords' | 'report'>
}

/** A claim of any waiting rows. */
export const anyRows: RowsRequest = {
  limit: 10,
  keyRowsMax: 1_000,
  exceptKeys: [],
  skippedIds: [],
  heldTypes: [],
}

/** A database with a table made by `ddl`, read as `yaml` says; without yaml, section 10's. */
export async function setup({ ddl = '', yaml = '' } = {}): Promise<Setup> {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool, url } = database
  if (ddl !== '') await pool.query(ddl)
  return {
    url,
    pool,
    ...opened(pool, yaml),
    describedAs: (other) => opened(pool, other),
    async connect() {
      const client = new pg.Client(url)
      client.on('error', () => {})
      await client.connect()
      onTestFinished(() => client.end())
      return client
    },
  }
}

function opened(pool: pg.Pool, yaml: string) {
  const outbox = new Outbox(pool, yaml === '' ? 'outbox' : tableOf(yaml), 1_000, pool)
  const captureLock = openCaptureLock(pool)

  async function captureRecords(limit = 100, exceptKeys: readonly string[] = []) {
    await using claimed = await openClaim(outbox, { ...anyRows, limit, exceptKeys })
    const records = await claimed.readAsManyAsFit()
    const inserted = await captureLock.withLock((turn) => turn.insert(records.map(kept), 'once'))
    const insertedIds = new Set(inserted?.map(({ outboxId }) => outboxId))
    const inLedger = records.filter(({ outboxId }) => insertedIds.has(outboxId))
    const statuses = inLedger.map(
      ({ outboxId, unreadable }): RowStatus => ({
        outboxId,
        state: unreadable === null ? 'queued' : 'rejected',
        transactionId: null,
        errorCode: null,
        error: unreadable,
      }),
    )
    const unwritten = await claimed.markReturningUnwrittenIds(statuses)
    await report(...statuses.filter(({ outboxId }) => unwritten.includes(outboxId)))
    return inLedger
  }

  const report = (...statuses: RowStatus[]) => writeBackRows(outbox, statuses)

  return {
    outbox,
    report,
    captureRecords,
    capture: async (limit?: number, exceptKeys?: readonly string[]) =>
      (await captureRecords(limit, exceptKeys)).map(({ outboxId }) => outboxId),
  }
}

/** Waits until no row is left. */
export async function rests({ capture, outbox }: Pick<Setup, 'capture' | 'outbox'>): Promise<void> {
  await expect
    .poll(async () => [await capture(), await mayHaveWaitingRows(outbox)], { timeout: 50_000 })
    .toEqual([[], false])
}

/** Claims rows in a transaction of its own, which marking commits and disposal rolls back. */
export const openClaim = (outbox: Outbox, request: RowsRequest) =>
  inOwnTransaction(outbox, (db) => claimRows(outbox, db, request))

/** Like `openClaim`, for one row. */
export const openClaimOfRow = (outbox: Outbox, outboxId: string, exceptKeys: readonly string[] = []) =>
  inOwnTransaction(outbox, (db) => claimRow(outbox, db, outboxId, exceptKeys))

async function inOwnTransaction(outbox: Outbox, work: (db: Database) => Promise<ClaimedRows>) {
  const transaction = await beginTransaction((await outbox.open()).db)
  try {
    const rows = await work(transaction.db)
    return {
      ...rows,
      readAsManyAsFit: () => readClaimedRows(outbox, transaction.db, rows),
      async markReturningUnwrittenIds(statuses: readonly RowStatus[]) {
        const unwritten = await markRows(transaction.db, rows, statuses)
        await transaction.commit()
        return unwritten
      },
      [Symbol.asyncDispose]: () => transaction[Symbol.asyncDispose](),
    }
  } catch (error) {
    await transaction[Symbol.asyncDispose]()
    throw error
  }
}

export function tableOf(yaml: string) {
  const { table, problems } = parseOutboxFile('outbox.yaml', yaml)
  if (table === null) throw new Error(problems.map(({ line, message }) => `${line}: ${message}`).join('\n'))
  return table
}

function kept({ unreadable, ...record }: OutboxRecord) {
  return {
    ...record,
    id: crypto.randomUUID(),
    resource: 'data' as const,
    body: '{}',
    tracked: true,
    sendsOwnId: false,
    idempotencyKey: crypto.randomUUID(),
    error: unreadable,
  }
}
