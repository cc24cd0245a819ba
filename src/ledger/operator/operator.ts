import type { Database, Pool } from '../../postgres/database.ts'

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
  | 'show'
  | 'search'
  | 'download'

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
