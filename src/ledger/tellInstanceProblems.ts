import type { ProblemKind } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { isAlive } from './instanceLife.ts'
import { raiseProblems } from './problems.ts'

/** The kinds of problems that an instance has: they go with it. */
const kinds = [
  'loop_failing',
  'claim_lost',
  'budget_starved',
  'files_broken',
  'credentials_broken',
] as const satisfies ProblemKind[]

/** A loop comes round again within this time, and looks for what it lost. */
const triedAgainMs = 10_000

/** A problem of one instance. */
export interface InstanceProblem {
  kind: (typeof kinds)[number]
  /** What of the instance it is about, such as a loop. */
  part: string
  /** For the operator: what was seen, without the client's data. */
  detail: string
}

/** Says what is wrong in an instance: exactly these stand. */
export async function tellProblems(
  db: Database,
  instanceId: string,
  problems: readonly InstanceProblem[],
): Promise<void> {
  const standing = problems.map(({ kind, part, detail }) => ({
    kind,
    subject: `${part} of ${instanceId.slice(0, 8)}`,
    detail,
    retryInMs: triedAgainMs,
  }))
  await db.query(
    `delete from outboxd.problem where kind = any($1) and subject like '% of ' || left($2, 8)
       and (kind, subject) not in (select kind, subject from json_to_recordset($3) as r(kind text, subject text))`,
    [kinds, instanceId, JSON.stringify(standing)],
  )
  await raiseProblems(db, standing)
}

/** Forgets what instances said of themselves that have been silent since. */
export async function forgetProblems(db: Database): Promise<void> {
  await db.query(
    `delete from outboxd.problem p where kind = any($1) and not exists (
       select from outboxd.instance i where p.subject like '% of ' || left(i.id::text, 8)
         and ${isAlive('i')}
     )`,
    [kinds],
  )
}
