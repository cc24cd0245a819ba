import type { Database } from '../../postgres/database.ts'

/** Who changes something, and why. */
export interface Actor {
  /** For the logs: `operator NAME`. */
  who: string
  /** Null: nothing was said. */
  reason: string | null
  /** user@host that gives the command, whatever name it goes by. */
  account: string
}

/** What a command or a page says of him; the store adds the account. */
export type StatedActor = Omit<Actor, 'account'>

/** What an operator does that is no step of one submission, as he says it after `outboxd`. */
export type Act =
  | 'pause'
  | 'resume'
  | 'resume --all'
  | 'resume --believe-refusals'
  | 'reload'
  | 'adopt'
  | 'prune'
  | 'show'
  | 'erase'
  | 'recover'
  | 'recover --restored'

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

/** What an event keeps of its actor beside his name, as jsonb. @param value of a placeholder: of the reason, and of the account */
export const actorDetail = (reason: string, account: string): string =>
  `jsonb_strip_nulls(jsonb_build_object('reason', ${reason}::text, 'account', ${account}::text))`
