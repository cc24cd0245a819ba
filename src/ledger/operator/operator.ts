import type { Database, Pool } from '../../postgres/database.ts'
import { PollQueue } from '../queue.ts'

export interface Operator {
  readonly ledger: Pool
  readonly actor: Actor
}

/** A submission as the operator saw it. A change does nothing if the submission took a step since. */
export interface SeenRecord {
  id: string
  revision: number
  key: string | null
}

export interface Actor {
  who: string
  reason: string | null
  /** user@host. */
  account: string
}

export type WhoAndReason = Omit<Actor, 'account'>

/** Acts that are not steps of a submission: commands without `outboxd`, or acts of the console. */
export type OperatorAct =
  | 'pause'
  | 'resume'
  | 'resume --all'
  | 'adopt'
  | 'capture'
  | 'prune'
  | 'erase'
  | 'recover'
  | ValueAccess['act']

export interface ValueAccess {
  act: 'show' | 'search' | 'download'
  /** `id` is null if the row was not captured. */
  records: readonly { id: string | null; outboxId: string; type: string }[]
  /** Number of further records. */
  unnamed: number
  /** Does not contain the text of a search. */
  detail?: Record<string, string | number>
}

export function logValueAccess(
  { ledger, actor }: Operator,
  { act, records, unnamed, detail }: ValueAccess,
): Promise<void> {
  const named = records.map(({ id, outboxId, type }) => ({ submission: id, outboxId, type }))
  return logOperatorAct(ledger, actor, act, { ...detail, ...(unnamed !== 0 && { unnamed }), records: named })
}

export async function logOperatorAct(
  db: Database,
  { who, reason, account }: Actor,
  act: OperatorAct,
  detail: Record<string, unknown> | null,
): Promise<void> {
  await db.query(
    'insert into outboxd.operator_act (act, who, account, reason, detail) values ($1, $2, $3, $4, $5::jsonb)',
    [act, who, account, reason, detail === null ? null : JSON.stringify(detail)],
  )
}

export const reasonAndAccountJsonSql = (reasonSql: string, accountSql: string): string =>
  `jsonb_strip_nulls(jsonb_build_object('reason', ${reasonSql}::text, 'account', ${accountSql}::text))`

export async function withOpenQueue<T>({ ledger }: Operator, work: (queue: PollQueue) => Promise<T>): Promise<T> {
  const queue = await PollQueue.open(ledger)
  try {
    return await work(queue)
  } finally {
    await queue.close()
  }
}
