import type { State } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'

/** A step of a submission from a state to another, and what lists filter the submission by. */
export interface Step {
  /** Of the event: a bigint, as pg gives it. */
  id: string
  from: State | null
  to: State
  type: string
  key: string | null
  code: string | null
  transactionId: string | null
  mayHaveArrived: boolean
}

/** The steps after an event, the oldest first, up to `most`. */
export async function readSteps(db: Database, afterId: string, most: number): Promise<Step[]> {
  const { rows } = await db.query<Step>(
    `select e.id, e.from_state as "from", e.to_state as "to", s.type, s.key, s.error_code as code,
       s.transaction_id as "transactionId", s.may_have_arrived as "mayHaveArrived"
     from outboxd.submission_event e join outboxd.submission s on s.id = e.submission_id
     where e.id > $1 and e.from_state is distinct from e.to_state order by e.id limit $2`,
    [afterId, most],
  )
  return rows
}
