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

/** What an operator does that is no step of one submission, as he says it after `outboxd`; the last three are the console's. */
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
export function logSight(db: Database, actor: Actor, { act, records, unnamed, detail }: Sight): Promise<void> {
  const named = records.map(({ id, outboxId, type }) => ({ submission: id, outboxId, type }))
  const more = unnamed === 0 ? {} : { unnamed }
  return logAct(db, actor, act, act === 'show' ? (named[0] ?? null) : { ...detail, ...more, records: named })
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

/** What an event keeps of its actor beside his name, as jsonb. @param value of a placeholder: of the reason, and of the account */
export const actorDetail = (reason: string, account: string): string =>
  `jsonb_strip_nulls(jsonb_build_object('reason', ${reason}::text, 'account', ${account}::text))`
