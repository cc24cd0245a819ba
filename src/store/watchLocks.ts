import { setTimeout } from 'node:timers/promises'
import { createPool } from '../postgres/database.ts'
import { type LockingSession, readLockingSessions } from '../postgres/lockingSessions.ts'

const firstLookMs = 1_000
const againMs = 500

/** Sees, on a connection of its own, for whom sessions wait. */
export interface LockWatch extends AsyncDisposable {
  /** Those that were last seen to be waited for; empty where none was. */
  holders(): readonly LockingSession[]
}

/**
 * Watches for whom our sessions wait until it is disposed of: once a statement has given up nobody can tell. Work that is quick is
 * not watched.
 *
 * @param name of our sessions, by application_name
 */
export function watchLocks(url: string, name: string): LockWatch {
  let holders: readonly LockingSession[] = []
  const stop = new AbortController()
  const wait = (ms: number) => setTimeout(ms, undefined, { signal: stop.signal })
  const watching = wait(firstLookMs)
    .then(async () => {
      const pool = createPool({ url, name: `${name} locks`, connections: 1, onIdleError: () => {} })
      try {
        for (;;) {
          const seen = await readLockingSessions(pool, name)
          if (seen.length > 0) holders = seen
          await wait(againMs)
        }
      } finally {
        await pool.end()
      }
    })
    .catch(() => {}) // it was stopped, or cannot be asked: then nobody can say
  return {
    holders: () => holders,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await watching
    },
  }
}
