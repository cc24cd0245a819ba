import { type State, states } from '../../model/submission.ts'
import { type Database, epochMsSql, queryOne } from '../../postgres/database.ts'
import { formatIsoInstantOrNull } from '../../time.ts'
import { hasTransactionIdSql } from '../transactions.ts'

export interface ListedSubmission {
  id: string
  outboxId: string
  type: string
  key: string | null
  state: State
  code: string | null
  error: string | null
  /** True if the record failed or was rejected, but the service may have it. */
  mayHaveArrived: boolean
  /** True if a request of it arrived, or may have; in each state. */
  wasSent: boolean
  transactionId: string | null
  idempotencyKey: string
  /** Requests that may have left. */
  attempts: number
  recordedMs: number
  capturedMs: number
  sentMs: number | null
  acceptedMs: number | null
  endedMs: number | null
  /** The time when the submission entered its state. */
  sinceMs: number
  /** Rises with each step, so that an operator's decision is dropped if a step came first. */
  revision: number
}

/** Null matches all. */
export interface SubmissionFilter {
  states: readonly State[]
  /** Ignores case. */
  code: string | null
  type: string | null
  key: string | null
  /** Entered its state at this time or later. */
  sinceMs: number | null
  /** Entered its state before this time. */
  untilMs: number | null
  /** Its row was created at this time or later. */
  createdSinceMs: number | null
  mayHaveArrived: boolean | null
  transactionId: string | null
  /** A `cause` of `countFailureCauses`. */
  cause: string | null
  among: readonly string[] | null
}

export const anySubmissionFilter: SubmissionFilter = {
  states,
  code: null,
  type: null,
  key: null,
  sinceMs: null,
  untilMs: null,
  createdSinceMs: null,
  mayHaveArrived: null,
  transactionId: null,
  cause: null,
  among: null,
}

/** `longest`: unchanged for the longest time first. */
export type ListOrder = 'longest' | 'newest'

/** A `ListedSubmission` without `sinceMs`, from alias `s`. */
export const listedColumnsSql = `
  s.id, s.outbox_id as "outboxId", s.type, s.key, s.state, s.error_code as code, left(s.error, 500) as error,
  s.may_have_arrived as "mayHaveArrived", s.was_sent as "wasSent", s.transaction_id as "transactionId", s.idempotency_key as "idempotencyKey",
  s.attempt as attempts, ${epochMsSql('s.recorded_at')} as "recordedMs", ${epochMsSql('s.captured_at')} as "capturedMs",
  ${epochMsSql('s.sent_at')} as "sentMs", ${epochMsSql('s.accepted_at')} as "acceptedMs", ${epochMsSql('s.ended_at')} as "endedMs", s.revision`

export const stateSinceSql = `coalesce((
  select max(e.at) from outboxd.submission_event e
  where e.submission_id = s.id and e.to_state = s.state and e.from_state is distinct from e.to_state
), s.captured_at)`

export async function selectSubmissions(
  db: Database,
  filter: SubmissionFilter,
  limit: number,
  order: ListOrder = 'longest',
): Promise<ListedSubmission[]> {
  return (await selectSubmissionPage(db, filter, { order, from: null, limit })).submissions
}

export async function selectSubmissionIds(
  db: Database,
  filter: SubmissionFilter,
  limit: number,
  order: ListOrder,
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    matchingSubmissionsSql('s.id', order),
    filterParameters(filter, limit),
  )
  return rows.map(({ id }) => id)
}

export async function countSubmissions(db: Database, filter: SubmissionFilter, countMax: number): Promise<number> {
  const { n } = await queryOne<{ n: number }>(
    db,
    `select count(*)::int as n from (${matchingSubmissionsSql('s.id', 'longest')}) matching`,
    filterParameters(filter, countMax),
  )
  return n
}

/** Counts the records of each state, by sums that are kept. */
export async function countByState(db: Database): Promise<Record<State, number>> {
  const { rows } = await db.query<{ state: State; n: number }>(
    'select state, sum(delta)::float8 as n from outboxd.state_delta group by state',
  )
  const counts = new Map(rows.map(({ state, n }) => [state, n]))
  return Object.fromEntries(states.map((state) => [state, counts.get(state) ?? 0])) as Record<State, number>
}

/** Returns payloads by submission id, without those that are emptied or longer. */
export async function readPayloads(
  db: Database,
  ids: readonly string[],
  charsMax: number,
): Promise<Map<string, string>> {
  const { rows } = await db.query<{ id: string; payload: string }>(
    'select id, payload from outboxd.submission where id = any($1::uuid[]) and length(payload) <= $2',
    [ids, charsMax],
  )
  return new Map(rows.map(({ id, payload }) => [id, payload]))
}

/** The parameters of `matchingSubmissionsSql`. */
export function filterParameters(filter: SubmissionFilter, limit: number, from: ListPosition | null = null): unknown[] {
  return [
    filter.states,
    filter.code,
    filter.type,
    filter.key,
    formatIsoInstantOrNull(filter.sinceMs),
    formatIsoInstantOrNull(filter.untilMs),
    filter.mayHaveArrived,
    filter.transactionId,
    filter.cause,
    filter.among,
    formatIsoInstantOrNull(filter.createdSinceMs),
    limit,
    from?.sinceMicros,
    from?.seq,
  ]
}

/** Also compares the hash, because the index has only hashes. A text of the ERP may be too long for an index entry. */
const hasText = (column: string, value: string) =>
  `(${column} = ${value} and hashtextextended(${column}, 0) = hashtextextended(${value}, 0))`

export const hasKeySql = (valueSql: string): string => hasText('s.key', valueSql)

/**
 * The error of submission `s` without quoted text and without words that have digits. Error codes, names such as
 * `field1`, the HTTP status and the numbers of a rule such as `decimal(10,2) takes 8` stay.
 */
export const normalizedErrorSql = `regexp_replace(regexp_replace(regexp_replace(left(coalesce(s.error, ''), 500),
  '"[^"]*("|$)', '"…"', 'g'),
  '(?<!\\w)''[^'']*''(?!\\w)', '''…''', 'g'),
  '\\m(?<!answered |decimal\\(|decimal\\(\\d{1,3},|takes |at most |like \\S{0,40}|beyond )(?!E\\d{3}\\M)(?![A-Za-z_]{3,}\\d{1,2}\\M)[\\w.:+-]*\\d(?:[\\w.:+-]*\\w)?', '…', 'g')`

export const causeDigestSql = `left(md5(concat_ws(' ', s.state, upper(s.error_code), s.may_have_arrived::text, ${normalizedErrorSql})), 8)`

const matches = `($2::text is null or lower(s.error_code) = lower($2))
  and ($3::text is null or ${hasText('s.type', '$3')}) and ($4::text is null or ${hasKeySql('$4')})
  and ($7::boolean is null or s.may_have_arrived = $7)
  and ($8::text is null or ${hasTransactionIdSql('$8')})
  and ($10::uuid[] is null or s.id = any($10))
  and ($11::timestamptz is null or s.recorded_at >= $11)
  and ($9::text is null or ${causeDigestSql} = $9)`
const within = (time: string) =>
  `($5::timestamptz is null or ${time} >= $5) and ($6::timestamptz is null or ${time} < $6)`

/**
 * Selects columns of matching submissions, and `sinceMs`. A page begins at values of an index, so that earlier rows are
 * not read: Postgres reads a row comparison as a single range.
 *
 * Finished submissions may be millions, so they are read state by state, because an index orders only one state.
 * `offset 0` keeps Postgres from reading the log again for each use of the time.
 */
export function matchingSubmissionsSql(columns: string, order: ListOrder): string {
  const [way, sign] = order === 'newest' ? ['desc', '<'] : ['asc', '>']
  const isBeyond = (time: string) =>
    `($13::bigint is null or (${time}, s.seq) ${sign} (timestamptz 'epoch' + $13::bigint * interval '1 microsecond', $14::bigint))`
  return `
  select * from (
    (select ${columns}, ${epochMsSql('s.ended_at')} as "sinceMs", s.seq
     from unnest($1::text[]) wanted(state) cross join lateral (
       select s.* from outboxd.submission s
       where s.state = wanted.state and s.ended_at is not null and ${matches} and ${within('s.ended_at')}
         and ${isBeyond('s.ended_at')}
       order by s.ended_at ${way}, s.seq ${way} limit $12
     ) s order by s.ended_at ${way}, s.seq ${way} limit $12)
    union all
    (select ${columns}, ${epochMsSql('since.at')}, s.seq
     from outboxd.submission s cross join lateral (select ${stateSinceSql} as at offset 0) since
     where s.state = any($1::text[]) and s.ended_at is null and ${matches} and ${within('since.at')}
       and ${isBeyond('since.at')}
     order by since.at ${way}, s.seq ${way} limit $12)
  ) both_halves order by "sinceMs" ${way}, seq ${way} limit $12`
}

/** Where a page of the list begins: a record's `sinceMs`, to the microsecond, and its `seq`. */
export interface ListPosition {
  sinceMicros: number
  seq: string
}

export interface PageWanted {
  order: ListOrder
  /** The page begins after this position. */
  from: ListPosition | null
  limit: number
}

export interface SubmissionPage {
  submissions: ListedSubmission[]
  /** Null after the last page. */
  next: ListPosition | null
}

export async function selectSubmissionPage(
  db: Database,
  filter: SubmissionFilter,
  { order, from, limit }: PageWanted,
): Promise<SubmissionPage> {
  const { rows } = await db.query<ListedSubmission & { seq: string }>(
    matchingSubmissionsSql(listedColumnsSql, order),
    filterParameters(filter, limit + 1, from),
  )
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return {
    submissions: shown.map(({ seq: _, ...submission }) => submission),
    // The microseconds are exact, because `sinceMs` resolves a fifth of a microsecond until the year 9999.
    next: last === undefined ? null : { sinceMicros: Math.round(last.sinceMs * 1_000), seq: last.seq },
  }
}

/** `ending`: the last hex digits of an id, at least six. `range`: ids from the first to the last, both included. */
export type SubmissionReference =
  | { kind: 'outbox' | 'ending' | 'idempotency-key' | 'transaction' | 'key'; value: string }
  | { kind: 'ids' | 'range'; value: readonly string[] }

/** Returns submissions in the order of their ids. If a key was asked for, the newest is first. */
export async function findSubmissions(
  db: Database,
  { kind, value }: SubmissionReference,
  limit: number,
): Promise<ListedSubmission[]> {
  const { rows } = await db.query<ListedSubmission>(findSubmissionsSql[kind], [limit, value])
  return rows
}

const find = (condition: string, order = 's.id') => `
  select ${listedColumnsSql}, ${epochMsSql(`coalesce(s.ended_at, ${stateSinceSql})`)} as "sinceMs"
  from outboxd.submission s where ${condition} order by ${order} limit $1`

/** Each kind has its index. $1 is the limit. */
export const findSubmissionsSql: Record<SubmissionReference['kind'], string> = {
  outbox: find('s.outbox_id = $2'),
  ids: find('s.id = any($2::uuid[])'),
  range: find('s.id between ($2::uuid[])[1] and ($2::uuid[])[2]'),
  ending: find(`right(s.id::text, 6) = right($2::text, 6) and replace(s.id::text, '-', '') like '%' || $2::text`),
  'idempotency-key': find('s.idempotency_key = $2::uuid'),
  transaction: find(hasTransactionIdSql('$2::text')),
  key: find(hasKeySql('$2::text'), 's.seq desc'),
}
