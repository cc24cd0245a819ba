import { type Amounts, endStates, type State } from '../../model.ts'
import { type Database, epochMsSql, isoTime } from '../../postgres/database.ts'
import type { LoggedEvent } from '../operator/readSubmissionDetail.ts'
import { likePatternsOf } from '../operator/search.ts'
import { hasKeySql, type ListedSubmission } from '../operator/selectSubmissions.ts'
import { type AuditedAct, type RecordName, readOperatorActs, recordNameParameters } from './readOperatorActs.ts'

export interface AuditSpan {
  sinceMs: number | null
  /** Upper bound of the record's end. Open records count as ending now. */
  untilMs: number | null
  key: string | null
  record: RecordName | null
  /** Excludes acts. */
  type: string | null
  /** Text in key, payload or body. Excludes acts. */
  containing: string | null
}

export interface AuditStep extends Omit<LoggedEvent, 'detail'> {
  reason: string | null
  /** user@host. */
  account: string | null
  amounts: Amounts | null
}

export interface AuditedRecord
  extends Pick<ListedSubmission, 'id' | 'outboxId' | 'type' | 'key' | 'state' | 'code' | 'transactionId' | 'attempts'>,
    Pick<ListedSubmission, 'recordedMs' | 'capturedMs' | 'sentMs' | 'acceptedMs' | 'endedMs'> {
  kind: 'record'
  emptiedMs: number | null
  erasedMs: number | null
  steps: AuditStep[]
  body: string | null
}

export interface PrunedRecord {
  kind: 'pruned'
  id: string
  outboxId: string
  type: string
  state: State
  transactionId: string | null
  recordedMs: number
  endedMs: number
  prunedMs: number
}

export type AuditEntry = AuditedRecord | PrunedRecord | AuditedAct

/** Payloads can be large. */
const pageRows = 100

/**
 * Yields pruned records, then ended records and acts by time, then open records. Each page is one short statement by an
 * index, so daemons go on.
 */
export async function* readAuditEntries(db: Database, span: AuditSpan): AsyncGenerator<AuditEntry> {
  const nowMs = await readNowMs(db)
  if (span.type !== null || span.containing !== null) yield* readRecords(db, span, nowMs)
  else if (span.key !== null || span.record !== null) {
    yield* readNamed(db, span)
    yield* readOperatorActs(db, { ...span, untilMs: Math.min(span.untilMs ?? nowMs, nowMs) })
  } else yield* readRecords(db, span, nowMs, readOperatorActs(db, span))
}

async function* readRecords(
  db: Database,
  span: AuditSpan,
  nowMs: number,
  ...acts: AsyncGenerator<AuditedAct>[]
): AsyncGenerator<AuditEntry> {
  if (span.key !== null || span.record !== null) {
    yield* readNamed(db, span)
    return
  }
  if (span.containing === null) yield* readPruned(db, span)
  const endedBefore = { ...span, untilMs: Math.min(span.untilMs ?? nowMs, nowMs) }
  yield* inOrder([...endStates.map((state) => readEnded(db, endedBefore, state)), ...acts])
  if (span.untilMs === null || span.untilMs > nowMs) yield* readOpen(db, span, nowMs)
}

const openStates: readonly State[] = ['queued', 'sending', 'accepted']

/**
 * Selects whole rows, so that the statement is short. The caller leaves out rows without the text.
 * @param patterns the number of the placeholder with the text's patterns
 */
const columnsWith = (
  patterns: number,
) => `'record' as kind, s.id, s.outbox_id as "outboxId", s.type, s.key, s.state, s.error_code as code,
  s.transaction_id as "transactionId", s.attempt as attempts, ${epochMsSql('s.recorded_at')} as "recordedMs",
  ${epochMsSql('s.captured_at')} as "capturedMs", ${epochMsSql('s.sent_at')} as "sentMs", ${epochMsSql('s.accepted_at')} as "acceptedMs",
  ${epochMsSql('s.ended_at')} as "endedMs", ${epochMsSql('s.emptied_at')} as "emptiedMs", ${epochMsSql('s.erased_at')} as "erasedMs", log.steps,
  s.body,
  $${patterns}::text[] is null or coalesce(s.key ilike any($${patterns}), false) or coalesce(s.payload ilike any($${patterns}), false)
    or coalesce(s.body ilike any($${patterns}), false) as fits,
  s.seq::text as seq, s.ended_at::text as "endedAt"`

const log = `cross join lateral (
  select coalesce(json_agg(json_build_object('atMs', ${epochMsSql('e.at')}, 'from', e.from_state, 'to', e.to_state,
      'attempt', e.attempt, 'cause', e.cause, 'who', e.who, 'reason', e.detail ->> 'reason',
      'account', e.detail ->> 'account', 'amounts', e.amounts) order by e.id), '[]') as steps
  from outboxd.submission_event e where e.submission_id = s.id) log`

interface Position {
  seq: string
  endedAt: string
}
type Row = AuditedRecord & Position & { fits: boolean }
type Asked = Pick<AuditSpan, 'type' | 'containing'>

const patternsFor = ({ containing }: Asked) => (containing === null ? null : likePatternsOf(containing))

/** Has one lower bound, because with two Postgres begins at the lower one. */
const endedSql = `select ${columnsWith(5)} from (
    select * from outboxd.submission s
    where s.state = $1 and s.ended_at < $2::timestamptz and (s.ended_at, s.seq) > ($3::timestamptz, $4::bigint)
    order by s.ended_at, s.seq limit ${pageRows}
  ) s ${log} order by s.ended_at, s.seq`

function readEnded(db: Database, span: AuditSpan, state: State): AsyncGenerator<AuditedRecord> {
  const { sinceMs, untilMs } = span
  const first = { seq: '0', endedAt: isoTime(sinceMs) ?? '-infinity' }
  return inPages(
    span,
    async ({ endedAt, seq }) => {
      const { rows } = await db.query<Row>(endedSql, [state, isoTime(untilMs), endedAt, seq, patternsFor(span)])
      return rows
    },
    first,
  )
}

/** Includes records that ended since the audit began. */
const openSql = `select ${columnsWith(5)} from (
    select s.* from outboxd.submission s where s.state = any($1) and s.ended_at is null and s.seq > $4::bigint
    union all
    select s.* from outboxd.submission s
    where s.state = any($2) and s.ended_at >= $3::timestamptz and s.captured_at < $3::timestamptz and s.seq > $4::bigint
    order by seq limit ${pageRows}
  ) s ${log} order by s.seq`

function readOpen(db: Database, asked: Asked, nowMs: number): AsyncGenerator<AuditedRecord> {
  return inPages(asked, async ({ seq }) => {
    const { rows } = await db.query<Row>(openSql, [openStates, endStates, isoTime(nowMs), seq, patternsFor(asked)])
    return rows
  })
}

const namedSql = `select ${columnsWith(7)} from (
    select * from outboxd.submission s where ($1::text is null or ${hasKeySql('$1')}) and (num_nulls($5::uuid, $6::text) = 2 or s.id = $5 or s.outbox_id = $6) and s.seq > $4::bigint
      and (s.ended_at is null and $3::timestamptz is null
        or s.ended_at >= coalesce($2::timestamptz, '-infinity') and s.ended_at < coalesce($3::timestamptz, 'infinity'))
    order by s.seq limit ${pageRows}
  ) s ${log} order by s.seq`

function readNamed(db: Database, span: AuditSpan): AsyncGenerator<AuditedRecord> {
  const { sinceMs, untilMs, key, record } = span
  return inPages(span, async ({ seq }) => {
    const { rows } = await db.query<Row>(namedSql, [
      key,
      isoTime(sinceMs),
      isoTime(untilMs),
      seq,
      ...recordNameParameters(record),
      patternsFor(span),
    ])
    return rows
  })
}

async function* inPages(
  { type }: Asked,
  readPage: (after: Position) => Promise<Row[]>,
  first: Position = { seq: '0', endedAt: '-infinity' },
): AsyncGenerator<AuditedRecord> {
  let after = first
  for (;;) {
    const rows = await readPage(after)
    for (const { seq, endedAt, fits, ...record } of rows) {
      after = { seq, endedAt }
      if (fits && (type === null || record.type === type)) yield record
    }
    if (rows.length < pageRows) return
  }
}

/** Pruned records are ordered by their primary key only. */
const prunedRows = 5_000

async function* readPruned(db: Database, { sinceMs, untilMs, type }: AuditSpan): AsyncGenerator<PrunedRecord> {
  let after: { outboxId: string; outbox: number } = { outboxId: '', outbox: 0 }
  for (;;) {
    const { rows } = await db.query<PrunedRecord & { outbox: number }>(
      `select 'pruned' as kind, id, outbox_id as "outboxId", outbox, type, state, transaction_id as "transactionId",
         ${epochMsSql('recorded_at')} as "recordedMs", ${epochMsSql('ended_at')} as "endedMs", ${epochMsSql('pruned_at')} as "prunedMs"
       from outboxd.pruned_submission where (outbox_id, outbox) > ($1, $2) order by outbox_id, outbox limit ${prunedRows}`,
      [after.outboxId, after.outbox],
    )
    for (const { outbox, ...record } of rows) {
      after = { outboxId: record.outboxId, outbox }
      const { endedMs } = record
      if (type !== null && record.type !== type) continue
      if (endedMs >= (sinceMs ?? -Infinity) && endedMs < (untilMs ?? Infinity)) yield record
    }
    if (rows.length < prunedRows) return
  }
}

async function* inOrder(sources: AsyncGenerator<AuditedRecord | AuditedAct>[]) {
  const heads = await Promise.all(sources.map(async (source) => ({ source, next: await source.next() })))
  for (;;) {
    const first = heads
      .filter(({ next }) => !next.done)
      .reduce<(typeof heads)[number] | null>(
        (least, head) => (least === null || timeOf(head.next.value) < timeOf(least.next.value) ? head : least),
        null,
      )
    if (first === null) return
    yield first.next.value as AuditedRecord | AuditedAct
    first.next = await first.source.next()
  }
}

const timeOf = (entry: AuditedRecord | AuditedAct): number =>
  entry.kind === 'act' ? entry.atMs : (entry.endedMs ?? entry.capturedMs)

async function readNowMs(db: Database): Promise<number> {
  const { rows } = await db.query<{ ms: number }>(`select ${epochMsSql('clock_timestamp()')} as ms`)
  return rows[0]?.ms ?? 0
}
