import { type State, states } from '../../model.ts'
import { type Database, epochMs, isoTime } from '../../postgres/database.ts'
import { hasTransactionIdSql } from '../transactions.ts'

/** A submission as lists show it: nothing of its payload. Times in epoch milliseconds, null if there is none. */
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
  transactionId: string | null
  idempotencyKey: string
  /** How many requests with it may have left. */
  attempts: number
  recordedMs: number
  capturedMs: number
  sentMs: number | null
  acceptedMs: number | null
  endedMs: number | null
  /** Since when it is in this state. */
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
  transactionId: string | null
  /** As `readCauses` names it. */
  cause: string | null
  /** The ids of those that a search has found. */
  among: readonly string[] | null
}

/** The filter that every submission passes. */
export const anySubmission: SubmissionFilter = {
  states,
  code: null,
  type: null,
  key: null,
  sinceMs: null,
  untilMs: null,
  mayHaveArrived: null,
  transactionId: null,
  cause: null,
  among: null,
}

/** Which end of a list comes first: that which has been in its state longest, or that which has just come there. */
export type ListOrder = 'longest' | 'newest'

/** The columns of `ListedSubmission` but `sinceMs`, from a table that is called `s`. */
export const listedColumns = `
  s.id, s.outbox_id as "outboxId", s.type, s.key, s.state, s.error_code as code, left(s.error, 500) as error,
  s.may_have_arrived as "mayHaveArrived", s.transaction_id as "transactionId", s.idempotency_key as "idempotencyKey",
  s.attempt as attempts, ${epochMs('s.recorded_at')} as "recordedMs", ${epochMs('s.captured_at')} as "capturedMs",
  ${epochMs('s.sent_at')} as "sentMs", ${epochMs('s.accepted_at')} as "acceptedMs", ${epochMs('s.ended_at')} as "endedMs", s.revision`

/** Since when an unfinished submission is in its state: its log says so, or its capture began it. */
export const unfinishedSince = `coalesce((
  select max(e.at) from outboxd.submission_event e
  where e.submission_id = s.id and e.to_state = s.state and e.from_state is distinct from e.to_state
), s.captured_at)`

/** The matching submissions, longest in their state first, or newest. */
export async function selectSubmissions(
  db: Database,
  filter: SubmissionFilter,
  limit: number,
  order: ListOrder = 'longest',
): Promise<ListedSubmission[]> {
  const { rows } = await db.query<ListedSubmission & { seq?: number }>(selectSql[order], [
    ...filterValues(filter),
    limit,
  ])
  return rows.map(({ seq: _, ...row }) => row)
}

/** The ids of the matching submissions, newest in their state first. */
export async function selectIds(db: Database, filter: SubmissionFilter, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(selectIdsSql, [...filterValues(filter), limit])
  return rows.map(({ id }) => id)
}

/** How many match, counted up to `most`. */
export async function countSubmissions(db: Database, filter: SubmissionFilter, most: number): Promise<number> {
  const { rows } = await db.query<{ n: number }>(countSql, [...filterValues(filter), most])
  return rows[0]?.n ?? 0
}

/** The values of `matchingSql`, $1 to $10; $11 is the most rows. */
export function filterValues(filter: SubmissionFilter): unknown[] {
  return [
    filter.states,
    filter.code,
    filter.type,
    filter.key,
    isoTime(filter.sinceMs),
    isoTime(filter.untilMs),
    filter.mayHaveArrived,
    filter.transactionId,
    filter.cause,
    filter.among,
  ]
}

/** By its hash too, since that is what an index holds of a text of the ERP, which may be longer than an index's entry. */
const hasText = (column: string, value: string) =>
  `(${column} = ${value} and hashtextextended(${column}, 0) = hashtextextended(${value}, 0))`

export const hasKey = (value: string): string => hasText('s.key', value)

/**
 * What stands in a submission's way, without what is this record's own: two records with the same fault in the same field
 * have the same. Values are what stands in quotes, and words with digits, but for error codes, names of fields such as
 * `field1`, and the status that the service answered.
 *
 * Of a table that is called `s`.
 */
export const shapeColumn = `regexp_replace(regexp_replace(regexp_replace(left(coalesce(s.error, ''), 500),
  '"[^"]*("|$)', '"…"', 'g'),
  '(?<!\\w)''[^'']*''(?!\\w)', '''…''', 'g'),
  '\\m(?<!answered )(?!E\\d{3}\\M)(?![A-Za-z_]{3,}\\d{1,2}\\M)[\\w.:+-]*\\d(?:[\\w.:+-]*\\w)?', '…', 'g')`

/** A name of eight digits for all that have the same state, code and shape of error, and may have arrived alike. */
export const causeColumn = `left(md5(concat_ws(' ', s.state, upper(s.error_code), s.may_have_arrived::text, ${shapeColumn})), 8)`

const matches = `($2::text is null or lower(s.error_code) = lower($2))
  and ($3::text is null or ${hasText('s.type', '$3')}) and ($4::text is null or ${hasKey('$4')})
  and ($7::boolean is null or s.may_have_arrived = $7)
  and ($8::text is null or ${hasTransactionIdSql('$8')})
  and ($10::uuid[] is null or s.id = any($10))
  and ($9::text is null or ${causeColumn} = $9)`
const within = (time: string) =>
  `($5::timestamptz is null or ${time} >= $5) and ($6::timestamptz is null or ${time} < $6)`

/**
 * Columns of the submissions that a filter matches, and since when they are in their state.
 *
 * Two halves, as the finished ones, which may be millions, have an index on the time at which they ended: one state after the
 * other, since an index gives the order of one alone.
 *
 * `offset 0` keeps Postgres from looking into the log once more wherever the time is named.
 *
 * @param beyond a condition on when and with which number something came to its state
 */
export function matchingSql(
  columns: string,
  order: ListOrder,
  beyond: (time: string) => string = () => 'true',
): string {
  const way = order === 'newest' ? 'desc' : 'asc'
  return `
  select * from (
    (select ${columns}, ${epochMs('s.ended_at')} as "sinceMs", s.seq
     from unnest($1::text[]) wanted(state) cross join lateral (
       select s.* from outboxd.submission s
       where s.state = wanted.state and s.ended_at is not null and ${matches} and ${within('s.ended_at')}
         and ${beyond('s.ended_at')}
       order by s.ended_at ${way}, s.seq ${way} limit $11
     ) s order by s.ended_at ${way}, s.seq ${way} limit $11)
    union all
    (select ${columns}, ${epochMs('since.at')}, s.seq
     from outboxd.submission s cross join lateral (select ${unfinishedSince} as at offset 0) since
     where s.state = any($1::text[]) and s.ended_at is null and ${matches} and ${within('since.at')}
       and ${beyond('since.at')}
     order by since.at ${way}, s.seq ${way} limit $11)
  ) both_halves order by "sinceMs" ${way}, seq ${way} limit $11`
}

const selectSql = { longest: matchingSql(listedColumns, 'longest'), newest: matchingSql(listedColumns, 'newest') }
const selectIdsSql = matchingSql('s.id', 'newest')
const countSql = `select count(*)::int as n from (${matchingSql('s.id', 'longest')}) matching`

/** The place of a submission in a list: since when it is in its state, in microseconds, and its number. */
export interface ListPosition {
  sinceMicros: number
  /** A bigint, as pg gives it. */
  seq: string
}

/** Which part of a list: what comes after a position, or the end of what comes before it; null: its beginning. */
export interface PageWanted {
  order: ListOrder
  from: { way: 'after' | 'before'; position: ListPosition } | null
  limit: number
}

/** A part of a list, in the list's order. */
export interface SubmissionPage {
  submissions: ListedSubmission[]
  /** Of the first and the last of them; null if there is none. */
  ends: { first: ListPosition; last: ListPosition } | null
  /** Whether the list goes on in the way in which it was read. */
  goesOn: boolean
}

/**
 * Reads the matching submissions from a position on, however far into the list that is: by the values that it is ordered by,
 * which the indexes of `matchingSql` have, not by counting.
 */
export async function selectPage(
  db: Database,
  filter: SubmissionFilter,
  { order, from, limit }: PageWanted,
): Promise<SubmissionPage> {
  const isBack = from?.way === 'before'
  const read = isBack ? opposite[order] : order
  const values = [...filterValues(filter), limit + 1]
  const { rows } =
    from === null
      ? await db.query<Row>(selectSql[read], values)
      : await db.query<Row>(fromPosition[read], [...values, from.position.sinceMicros, from.position.seq])
  const shown = rows.slice(0, limit)
  const inOrder = isBack ? shown.toReversed() : shown
  const [first, last] = [inOrder[0], inOrder.at(-1)]
  return {
    submissions: inOrder.map(({ seq: _, ...submission }) => submission),
    ends: first && last ? { first: positionOf(first), last: positionOf(last) } : null,
    goesOn: rows.length > limit,
  }
}

type Row = ListedSubmission & { seq: string }

const opposite = { longest: 'newest', newest: 'longest' } as const

/** Milliseconds as a double are true to a fifth of a microsecond, for as long as there are dates of four digits. */
const positionOf = ({ sinceMs, seq }: Row): ListPosition => ({ sinceMicros: Math.round(sinceMs * 1_000), seq })

/** A row comparison, which an index answers as one range. */
const beyond = (sign: '<' | '>') => (time: string) =>
  `(${time}, s.seq) ${sign} (timestamptz 'epoch' + $12::bigint * interval '1 microsecond', $13::bigint)`

const fromPosition = {
  longest: matchingSql(listedColumns, 'longest', beyond('>')),
  newest: matchingSql(listedColumns, 'newest', beyond('<')),
}

/** How a person names a submission. */
export type SubmissionReference =
  /** The id of its outbox row. */
  | { kind: 'outbox'; outboxId: string }
  /** Whole ids: uuids. */
  | { kind: 'ids'; ids: readonly string[] }
  /** The ids that begin alike: uuids, both ends included. A whole id is a range of one. */
  | { kind: 'range'; from: string; to: string }
  /** The ids that end in these hex digits, six at least. */
  | { kind: 'ending'; digits: string }
  | { kind: 'idempotency-key'; idempotencyKey: string }
  | { kind: 'transaction'; transactionId: string }
  | { kind: 'key'; key: string }

/** The submissions that the reference fits, up to `limit`; those of a key newest first. */
export async function findSubmissions(
  db: Database,
  reference: SubmissionReference,
  limit: number,
): Promise<ListedSubmission[]> {
  const { rows } = await db.query<ListedSubmission>(findSql[reference.kind], [limit, ...valuesOf(reference)])
  return rows
}

function valuesOf(reference: SubmissionReference): (string | readonly string[])[] {
  switch (reference.kind) {
    case 'ids':
      return [reference.ids]
    case 'outbox':
      return [reference.outboxId]
    case 'range':
      return [reference.from, reference.to]
    case 'ending':
      return [reference.digits]
    case 'idempotency-key':
      return [reference.idempotencyKey]
    case 'transaction':
      return [reference.transactionId]
    case 'key':
      return [reference.key]
    default:
      return reference satisfies never
  }
}

const find = (condition: string, order = 's.id') => `
  select ${listedColumns}, ${epochMs(`coalesce(s.ended_at, ${unfinishedSince})`)} as "sinceMs"
  from outboxd.submission s where ${condition} order by ${order} limit $1`

/** One statement for each kind of reference; each has its index. $1 is the limit. */
export const findSql: Record<SubmissionReference['kind'], string> = {
  outbox: find('s.outbox_id = $2'),
  ids: find('s.id = any($2::uuid[])'),
  range: find('s.id between $2::uuid and $3::uuid'),
  ending: find(`right(s.id::text, 6) = right($2::text, 6) and replace(s.id::text, '-', '') like '%' || $2::text`),
  'idempotency-key': find('s.idempotency_key = $2::uuid'),
  transaction: find(hasTransactionIdSql('$2::text')),
  key: find(hasKey('$2::text'), 's.seq desc'),
}
