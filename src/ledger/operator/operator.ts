import { type Database, inTransaction, type Pool } from '../../postgres/database.ts'
import { type KeyOnFailure, lockSubmissions, withKeysLocked } from '../keyOrder.ts'
import { lockJobsOf, openQueue, type Queue } from '../queue.ts'
import { lockTransactionIds, type TransactionRef } from '../transactions.ts'

/** The ledger, as one person changes it. */
export interface Operator {
  readonly ledger: Pool
  /** The ledger's address, for the queue. */
  readonly url: string
  readonly keyOnFailure: KeyOnFailure
  readonly actor: Actor
}

/** A submission as the operator saw it. It is left alone if it took a step since. */
export interface SeenRecord {
  id: string
  revision: number
  key: string | null
}

/** Who changes something, and why. */
export interface Actor {
  /** `operator NAME`. */
  who: string
  reason: string | null
  /** user@host that gives the command. */
  account: string
}

/** What a command or a page says of the actor; `operatorOf` adds the account. */
export type StatedActor = Omit<Actor, 'account'>

/**
 * What an operator does that is not a step of one submission: the command without `outboxd`, or an act of the
 * console.
 */
export type Act =
  | 'pause'
  | 'resume'
  | 'resume --all'
  | 'resume --believe-refusals'
  | 'reload'
  | 'adopt'
  | 'prune'
  | 'erase'
  | 'recover'
  | 'recover --restored'
  | ValueAccess['act']

/** A person saw, searched or downloaded values that pages mask. */
export interface ValueAccess {
  act: 'show' | 'search' | 'download'
  /** The records whose values these were, if they are named. */
  records: readonly { id: string; outboxId: string; type: string }[]
  /** How many more records there were. */
  unnamed: number | 'all'
  /** What else the log keeps, never the text that was looked for. */
  detail?: Record<string, string | number | null>
}

export function logValueAccess(
  { ledger, actor }: Operator,
  { act, records, unnamed, detail }: ValueAccess,
): Promise<void> {
  const named = records.map(({ id, outboxId, type }) => ({ submission: id, outboxId, type }))
  const more = unnamed === 0 ? {} : { unnamed }
  return logAct(ledger, actor, act, act === 'show' ? (named[0] ?? null) : { ...detail, ...more, records: named })
}

export async function logAct(
  db: Database,
  { who, reason, account }: Actor,
  act: Act,
  detail: Record<string, unknown> | null,
): Promise<void> {
  await db.query(
    'insert into outboxd.operator_act (act, who, account, reason, detail) values ($1, $2, $3, $4, $5::jsonb)',
    [act, who, account, reason, detail === null ? null : JSON.stringify(detail)],
  )
}

/** SQL: reason and account of an actor, for the detail of an event. Parameters are placeholders. */
export const actorDetailSql = (reason: string, account: string): string =>
  `jsonb_strip_nulls(jsonb_build_object('reason', ${reason}::text, 'account', ${account}::text))`

/**
 * Runs `work` in a transaction that has locked these records, their polls, their lines and the ids that they get,
 * in the order of locks (queue.ts). Then releases the heads of the lines.
 */
export function withSubmissionsLocked<T>(
  { ledger, keyOnFailure }: Operator,
  seen: readonly Pick<SeenRecord, 'id' | 'key'>[],
  work: (db: Database) => Promise<T>,
  ids: readonly TransactionRef[] = [],
): Promise<T> {
  return inTransaction(ledger, async (db) => {
    await lockJobsOf(db, seen)
    if (ids.length > 0) await lockTransactionIds(db, ids)
    const locked = await lockSubmissions(db, seen)
    // A replay can give a record another key: lock the lines of both.
    return withKeysLocked(db, [...seen, ...locked], keyOnFailure, () => work(db))
  })
}

export async function withQueue<T>({ url }: Operator, work: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = await openQueue(url, () => {}) // the next statement says so
  try {
    return await work(queue)
  } finally {
    await queue.close()
  }
}
