import { type Database, inTransaction, type Pool } from '../../postgres/database.ts'
import { inLines, type KeyOnFailure, lockSubmissions } from '../keyOrder.ts'
import { lockJobsOf, openQueue, type Queue } from '../queue.ts'
import { lockTransactionIds, type TransactionRef } from '../transactions.ts'

/** The ledger, as one person changes it, and what the logs say of that person. */
export interface Operator {
  readonly ledger: Pool
  /** The ledger's address, for the queue. */
  readonly url: string
  readonly keyOnFailure: KeyOnFailure
  readonly actor: Actor
}

/** A submission as the operator saw it: if it took a step since, it is left alone. */
export interface Seen {
  id: string
  revision: number
  key: string | null
}

/** Who changes something, and why. */
export interface Actor {
  /** For the logs: `operator NAME`. */
  who: string
  /** Null: nothing was said. */
  reason: string | null
  /** user@host that gives the command, whatever name it goes by. */
  account: string
}

/** What a command or a page says of them; `operatorOf` adds the account. */
export type StatedActor = Omit<Actor, 'account'>

/** What an operator does that is not a step of one submission, as it is said after `outboxd`. The console has three more. */
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
  | Sight['act']

/** That somebody saw, searched or downloaded values that pages mask. */
export interface Sight {
  act: 'show' | 'search' | 'download'
  /** The records whose values these were, as far as they are named. */
  records: readonly { id: string; outboxId: string; type: string }[]
  /** How many more records there were; 0: none. */
  unnamed: number | 'all'
  /** What else the log keeps of it: never a text that was looked for. */
  detail?: Record<string, string | number | null>
}

/** Logs that values were seen. */
export function logSight({ ledger, actor }: Operator, { act, records, unnamed, detail }: Sight): Promise<void> {
  const named = records.map(({ id, outboxId, type }) => ({ submission: id, outboxId, type }))
  const more = unnamed === 0 ? {} : { unnamed }
  return logAct(ledger, actor, act, act === 'show' ? (named[0] ?? null) : { ...detail, ...more, records: named })
}

/** Appends to the log of operators' acts. */
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

/** What an event keeps of its actor beside the name, as jsonb. @param value of a placeholder: of the reason, and of the account */
export const actorDetail = (reason: string, account: string): string =>
  `jsonb_strip_nulls(jsonb_build_object('reason', ${reason}::text, 'account', ${account}::text))`

/**
 * Runs `work` in a transaction that has these records, their polls, their lines and ids that are to be theirs locked, in
 * the one order (lockJobs.ts), and lets the lines' heads go after it.
 */
export function inLinesOf<T>(
  { ledger, keyOnFailure }: Operator,
  seen: readonly Pick<Seen, 'id' | 'key'>[],
  work: (db: Database) => Promise<T>,
  ids: readonly TransactionRef[] = [],
): Promise<T> {
  return inTransaction(ledger, async (db) => {
    await lockJobsOf(db, seen)
    if (ids.length > 0) await lockTransactionIds(db, ids)
    const locked = await lockSubmissions(db, seen)
    // A replay can give a record another key: the lines of both are ours.
    return inLines(db, [...seen, ...locked], keyOnFailure, () => work(db))
  })
}

/** Opens the queue of polls for one act. */
export async function withQueue<T>({ url }: Operator, work: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = await openQueue(url, () => {}) // the next statement says so
  try {
    return await work(queue)
  } finally {
    await queue.close()
  }
}
