import type { State } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'
import { causeColumn, shapeColumn } from './cause.ts'
import { filterValues, matchingSql, type SubmissionFilter } from './selectSubmissions.ts'

/** Submissions that stand where they are for the same cause. Times in epoch milliseconds. */
export interface Cause {
  /** The filter `cause` matches exactly these. */
  cause: string
  count: number
  state: State
  code: string | null
  mayHaveArrived: boolean
  /** Their error without values. */
  shape: string
  types: string[]
  firstMs: number
  lastMs: number
  /** The one that came to it first. */
  firstOutboxId: string
}

/** The causes that a filter's submissions share, the most frequent first, and of how many submissions they are. */
export async function readCauses(
  db: Database,
  filter: SubmissionFilter,
  rowsMax: number,
): Promise<{ causes: Cause[]; lookedAt: number; isCut: boolean }> {
  const { rows } = await db.query<Cause>(causesSql, [...filterValues(filter), rowsMax + 1])
  const lookedAt = rows.reduce((sum, { count }) => sum + count, 0)
  return { causes: rows, lookedAt: Math.min(lookedAt, rowsMax), isCut: lookedAt > rowsMax }
}

const columns = `s.outbox_id as "outboxId", s.state, s.error_code as code, s.may_have_arrived as "mayHaveArrived", s.type,
  ${shapeColumn} as shape, ${causeColumn} as cause`

const causesSql = `
  select cause, count(*)::int as count, min(state) as state, min(upper(code)) as code, "mayHaveArrived", min(shape) as shape,
    array_agg(distinct type) as types, min("sinceMs") as "firstMs", max("sinceMs") as "lastMs",
    (array_agg("outboxId" order by "sinceMs", seq))[1] as "firstOutboxId"
  from (${matchingSql(columns, 'newest')}) matching
  group by cause, "mayHaveArrived" order by count(*) desc, min("sinceMs")`
