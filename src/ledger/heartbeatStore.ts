import { createPool, type Database } from '../postgres/database.ts'
import type { DatabaseAddress } from '../postgres/databaseAddress.ts'
import { readLockingSessions } from '../postgres/locks.ts'
import { connectionsMax, daemonSessions, ownNames } from '../postgres/sessionSettings.ts'
import { answerReload, deleteInstance, writeHeartbeat } from './instances.ts'
import { type InstanceProblem, tellProblems } from './problems.ts'

/** What an instance says of itself, on connections of its own. */
export interface HeartbeatStore {
  /** Says that it lives. @returns the number of the reload that an operator has asked for; null where none waits for an answer */
  beat(): Promise<number | null>
  /** Says what is wrong in it: exactly these stand. */
  tell(problems: readonly InstanceProblem[]): Promise<void>
  /** The server's processes of others that this ledger's daemons wait for in the end, as far as we may see them; 0 is a prepared transaction. */
  readBlockers(): Promise<number[]>
  answerReload(answer: { asked: number; problem: string | null }): Promise<void>
  /** Says that it has left, with nothing in hand. */
  leave(): Promise<void>
  close(): Promise<void>
}

/** How long a beat may take: the time between two leaves room for one that is lost (src/daemon/heartbeat.ts). */
const limits = { connectMs: 2_000, statementMs: 2_500, answerMs: 3_000 }

/**
 * Opens the connections on which an instance says that it lives: no other work may make it wait, and neither a standby
 * nor a disk that is away. Nothing is lost with a sign of life that a crash takes back.
 *
 * @param assertBound asked after each: throws if this instance may not go on, so that it takes on no more work
 */
export function openHeartbeatStore(
  url: string | DatabaseAddress,
  instance: { id: string; version: string; host: string },
  onIdleError: (error: Error) => void,
  assertBound: (db: Database) => Promise<void> = async () => {},
): HeartbeatStore {
  const settings = { ...ownNames, synchronous_commit: 'off' }
  const connections = connectionsMax.heartbeat
  const pool = createPool({ url, name: daemonSessions.heartbeat, connections, onIdleError, settings, limits })
  return {
    async beat() {
      const asked = await writeHeartbeat(pool, instance)
      await assertBound(pool)
      return asked
    },
    tell: (problems) => tellProblems(pool, instance.id, problems),
    readBlockers: async () => (await readLockingSessions(pool, daemonSessions.work)).map(({ pid }) => pid),
    answerReload: (answer) => answerReload(pool, instance.id, answer),
    leave: () => deleteInstance(pool, instance.id),
    close: () => pool.end(),
  }
}
