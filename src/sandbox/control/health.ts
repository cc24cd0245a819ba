import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'

/** Below the patience of a container's health check. */
const patienceMs = 2_000

/** Whether the sandbox can serve, without a word of what it holds. */
export type Health = { status: 'ok' } | { status: 'unavailable'; reason: string }

/** Asks the database for a sign of life. Never throws. */
export async function readHealth(pool: pg.Pool): Promise<Health> {
  const late = new AbortController()
  const isAlive = pool.query('select 1').then(
    () => true,
    () => false,
  )
  const isInTime = await Promise.race([isAlive, delay(patienceMs, false, { signal: late.signal })])
  late.abort()
  return isInTime ? { status: 'ok' } : { status: 'unavailable', reason: 'The database does not answer.' }
}
