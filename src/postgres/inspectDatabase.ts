import type pg from 'pg'
import { createPool, DatabaseUnusable, isLockTimeoutOrCanceled, withConnectionErrorsExplained } from './database.ts'
import { type LockingSession, watchLockingSessions } from './locks.ts'
import { catalogSearchPathSettings } from './sessionSettings.ts'

/** A read of a database that may be missing, empty or closed to us. */
export interface Inspection<T> {
  url: string
  /** `outbox`: with the role's own search path, and a short wait for locks of the ERP. */
  of: 'ledger' | 'outbox'
  read: (db: pg.Pool) => Promise<T>
}

export class TableLocked extends Error {
  override name = 'TableLocked'
  readonly of: Inspection<unknown>['of']
  /** Never empty. */
  readonly holders: readonly LockingSession[]
  constructor(of: Inspection<unknown>['of'], holders: readonly LockingSession[], cause: unknown) {
    super('a table is locked', { cause })
    this.of = of
    this.holders = holders
  }
}

const sessionName = 'outboxd check'

/** @throws DatabaseUnusable if the database cannot be reached, TableLocked if a session of the ERP holds a lock */
export async function inspectDatabase<T>({ url, of, read }: Inspection<T>): Promise<T> {
  const isErp = of === 'outbox'
  const settings = isErp ? { lock_timeout: '2500' } : catalogSearchPathSettings
  const pool = createPool({ url, name: sessionName, connections: 1, isErp, settings })
  await using locking = isErp ? watchLockingSessions(url, sessionName) : null
  try {
    return await withConnectionErrorsExplained(url, () => read(pool))
  } catch (error) {
    const holders = locking?.sessions() ?? []
    const cause = error instanceof DatabaseUnusable ? error.cause : error
    throw holders.length > 0 && isLockTimeoutOrCanceled(cause) ? new TableLocked(of, holders, error) : error
  } finally {
    await pool.end()
  }
}
