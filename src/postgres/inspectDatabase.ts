import type pg from 'pg'
import { createPool, withConnectionErrorsExplained } from './database.ts'
import { catalogSearchPathSettings } from './sessionSettings.ts'

/** A read of a database that may be missing, empty or closed to us. */
interface Inspection<T> {
  url: string
  /** `outbox`: with the role's own search path, and a short wait for locks of the ERP. */
  of: 'ledger' | 'outbox'
  read: (db: pg.Pool) => Promise<T>
}

/** @throws DatabaseUnusable if the database cannot be reached or a lock is in the way */
export async function inspectDatabase<T>({ url, of, read }: Inspection<T>): Promise<T> {
  const isErp = of === 'outbox'
  const settings = isErp ? { lock_timeout: '2500' } : catalogSearchPathSettings
  const pool = createPool({ url, name: 'outboxd check', connections: 1, isErp, settings })
  try {
    return await withConnectionErrorsExplained(url, () => read(pool))
  } finally {
    await pool.end()
  }
}
