import type pg from 'pg'
import { createPool, withDatabase } from '../postgres/database.ts'

/** What `outboxd check` looks at of a database that may be missing, empty or not ours to read. */
export interface Inspection<T> {
  variable: 'DATABASE_URL' | 'STATE_DATABASE_URL'
  url: string
  look: (db: pg.Pool) => Promise<T>
}

/** Looks at a database once. @throws DatabaseUnusable in words when it cannot be reached */
export async function inspectDatabase<T>({ variable, url, look }: Inspection<T>): Promise<T> {
  const pool = createPool({ url, name: 'outboxd check', connections: 1, onIdleError: () => {} })
  try {
    return await withDatabase(variable, url, () => look(pool))
  } finally {
    await pool.end()
  }
}
