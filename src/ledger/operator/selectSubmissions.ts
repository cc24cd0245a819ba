import type { State } from '../../model.ts'
import type { Database } from '../../postgres/database.ts'

/** A submission as lists show it: nothing of its payload. */
export interface ListedSubmission {
  id: string
  outboxId: string
  type: string
  key: string | null
  state: State
  code: string | null
  error: string | null
  /** It failed or was rejected, and yet the service may have it. */
  mayHaveArrived: boolean
  /** Since when it is in this state, epoch milliseconds. */
  sinceMs: number
  /** Fences what an operator decides about it: it goes up with every step. */
  revision: number
}

/** Which submissions; null asks for any. */
export interface SubmissionFilter {
  states: readonly State[]
  /** Upper and lower case count as the same. */
  code: string | null
  type: string | null
  key: string | null
  /** In their state since then or later, epoch milliseconds. */
  sinceMs: number | null
  /** In their state since before then, epoch milliseconds. */
  untilMs: number | null
  /** Whether the service may have them although they failed or were rejected. */
  mayHaveArrived: boolean | null
}

/** The columns of `ListedSubmission` but `sinceMs`, from a table that is called `s`. */
export const listedColumns = `
  s.id, s.outbox_id as "outboxId", s.type, s.key, s.state, s.error_code as code, left(s.error, 500) as error,
  s.may_have_arrived as "mayHaveArrived", s.revision`

/** Since when an unfinished submission is in its state: its log says so, or its capture began it. */
export const unfinishedSince = `coalesce((
  select max(e.at) from outboxd.submission_event e
  where e.submission_id = s.id and e.to_state = s.state and e.from_state is distinct from e.to_state
), s.captured_at)`

/** The matching submissions, longest in their state first. */
export async function selectSubmissions(
  db: Database,
  filter: SubmissionFilter,
  limit: number,
): Promise<ListedSubmission[]> {
  const { rows } = await db.query<ListedSubmission & { seq?: number }>(selectSql, [
    filter.states,
    filter.code,
    filter.type,
    filter.key,
    isoTime(filter.sinceMs),
    isoTime(filter.untilMs),
    limit,
    filter.mayHaveArrived,
  ])
  return rows.map(({ seq: _, ...row }) => row)
}

const isoTime = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

const matches = `s.state = any($1::text[]) and ($2::text is null or lower(s.error_code) = lower($2))
  and ($3::text is null or s.type = $3) and ($4::text is null or s.key = $4)
  and ($8::boolean is null or s.may_have_arrived = $8)`
const within = (time: string) =>
  `($5::timestamptz is null or ${time} >= $5) and ($6::timestamptz is null or ${time} < $6)`

// Two halves, as the finished ones, which may be millions, have an index on the time at which they ended.
const selectSql = `
  select * from (
    (select ${listedColumns}, extract(epoch from s.ended_at)::float8 * 1000 as "sinceMs", s.seq
     from outboxd.submission s where s.ended_at is not null and ${matches} and ${within('s.ended_at')}
     order by s.ended_at, s.seq limit $7)
    union all
    (select ${listedColumns}, extract(epoch from since.at)::float8 * 1000, s.seq
     from outboxd.submission s cross join lateral (select ${unfinishedSince} as at) since
     where s.state in ('queued', 'sending', 'accepted') and ${matches} and ${within('since.at')}
     order by since.at, s.seq limit $7)
  ) both_halves order by "sinceMs", seq limit $7`
