import type { Amounts } from '../../model/outbox.ts'
import { endStates, type State } from '../../model/submission.ts'
import { type Database, epochMsSql, queryOne } from '../../postgres/database.ts'
import type { LoggedEvent } from '../operator/readSubmissionDetail.ts'
import { submissionContainsSql, toLikePatterns } from '../operator/search.ts'
import {
  anySubmissionFilter,
  findSubmissions,
  type ListedSubmission,
  type ListPosition,
  type SubmissionFilter,
  type SubmissionPage,
  selectSubmissionPage,
} from '../operator/selectSubmissions.ts'
import { type AuditedAct, type RecordName, readOperatorActs } from './readOperatorActs.ts'

export interface AuditSpan {
  sinceMs: number | null
  /** If set, only records that ended before this time. */
  untilMs: number | null
  key: string | null
  record: RecordName | null
  /** If set, no acts are read. */
  type: string | null
  /** Text in key, payload or body. If set, no acts are read. */
  containing: string | null
}

export interface AuditStep extends Omit<LoggedEvent, 'detail'> {
  reason: string | null
  /** user@host. */
  account: string | null
  amounts: Amounts | null
  currency: string | null
}

export interface AuditedRecord extends ListedSubmission {
  kind: 'record'
  emptiedMs: number | null
  erasedMs: number | null
  steps: AuditStep[]
  /** The steps by operators. */
  hands: AuditStep[]
  /** Those of the last request. */
  amounts: Amounts | null
  currency: string | null
  customer: string | null
}

export type AuditEntry = AuditedRecord | AuditedAct

/**
 * Yields ended records and acts by time, then open records. Reads each page with two short
 * statements that use an index, so that daemons are not slowed down.
 */
export async function* readAuditEntries(db: Database, span: AuditSpan): AsyncGenerator<AuditEntry> {
  const { sinceMs, key, record, type, containing } = span
  const nowMs = await readNowMs(db)
  const untilMs = Math.min(span.untilMs ?? nowMs, nowMs)
  const among = record === null ? null : await readIds(db, record)
  const asked = { ...anySubmissionFilter, type, key, among }
  // A record that takes a step meanwhile may be read twice. One snapshot would hold up vacuum.
  const seen = new Set<string>()
  const read = (filter: SubmissionFilter) => omitSeen(readRecords(db, filter, containing), seen)
  const ended = read({ ...asked, states: endStates, sinceMs, untilMs })
  if (type !== null || containing !== null) yield* ended
  else yield* inOrder(ended, readOperatorActs(db, { sinceMs, untilMs, key, record }))
  if (span.untilMs !== null) return
  yield* read({ ...asked, states: openStates })
  yield* read({ ...asked, states: endStates, sinceMs: nowMs })
}

const openStates: readonly State[] = ['queued', 'sending', 'accepted']

async function* omitSeen(records: AsyncGenerator<AuditedRecord>, seen: Set<string>) {
  for await (const each of records) {
    if (seen.has(each.id)) continue
    if (mayStillChange(each)) seen.add(each.id)
    yield each
  }
}

/** False for most records, whose ids would fill the memory. Only an operator's id lets a finished record change. */
const mayStillChange = ({ state, hands }: AuditedRecord) =>
  (state !== 'completed' && state !== 'discarded') || hands.length > 0

async function readIds(db: Database, record: RecordName): Promise<string[]> {
  if ('id' in record) return [record.id]
  return (await findSubmissions(db, { kind: 'outbox', value: record.outboxId }, pageRows)).map(({ id }) => id)
}

/** Few, because bodies can be large. */
const pageRows = 100

async function* readRecords(
  db: Database,
  filter: SubmissionFilter,
  containing: string | null,
): AsyncGenerator<AuditedRecord> {
  for (let from: ListPosition | null = null; ; ) {
    const page: SubmissionPage = await selectSubmissionPage(db, filter, { order: 'longest', from, limit: pageRows })
    const details = await readDetails(db, page.submissions, containing)
    for (const submission of page.submissions) {
      const detail = details.get(submission.id)
      if (detail === undefined) continue
      const { body, ...shown } = detail
      const { steps } = shown
      yield {
        kind: 'record',
        ...submission,
        ...shown,
        customer: customerOf(body),
        hands: steps.filter(({ actor }) => actor === 'operator'),
        amounts: steps.findLast(({ amounts }) => amounts !== null)?.amounts ?? null,
        currency: steps.findLast(({ currency }) => currency !== null)?.currency ?? null,
      }
    }
    if (page.next === null) return
    from = page.next
  }
}

function customerOf(body: string | null): string | null {
  try {
    const { customerId } = JSON.parse(body ?? '{}')
    return typeof customerId === 'string' && customerId !== '' ? customerId : null
  } catch {
    return null
  }
}

type Detail = Pick<AuditedRecord, 'emptiedMs' | 'erasedMs' | 'steps'> & { body: string | null }

async function readDetails(
  db: Database,
  submissions: readonly { id: string }[],
  containing: string | null,
): Promise<Map<string, Detail>> {
  const { rows } = await db.query<Detail & { id: string }>(
    `select s.id, ${epochMsSql('s.emptied_at')} as "emptiedMs", ${epochMsSql('s.erased_at')} as "erasedMs", s.body, log.steps
     from outboxd.submission s cross join lateral (
       select coalesce(json_agg(json_build_object('atMs', ${epochMsSql('e.at')}, 'from', e.from_state, 'to', e.to_state,
           'attempt', e.attempt, 'cause', e.cause, 'message', e.message, 'actor', e.actor, 'who', e.who, 'reason', e.detail ->> 'reason',
           'account', e.detail ->> 'account', 'amounts', e.amounts,
           'currency', e.detail ->> 'currency') order by e.id), '[]') as steps
       from outboxd.submission_event e where e.submission_id = s.id) log
     where s.id = any($1::uuid[]) and ($2::text[] is null or ${submissionContainsSql('$2')})`,
    [submissions.map(({ id }) => id), containing === null ? null : toLikePatterns(containing)],
  )
  return new Map(rows.map(({ id, ...detail }) => [id, detail]))
}

async function* inOrder(records: AsyncGenerator<AuditedRecord>, acts: AsyncGenerator<AuditedAct>) {
  let act = await acts.next()
  for await (const record of records) {
    for (; !act.done && act.value.atMs < Number(record.endedMs); act = await acts.next()) yield act.value
    yield record
  }
  if (!act.done) yield act.value
  yield* acts
}

async function readNowMs(db: Database): Promise<number> {
  const { ms } = await queryOne<{ ms: number }>(db, `select ${epochMsSql('clock_timestamp()')} as ms`)
  return ms
}
