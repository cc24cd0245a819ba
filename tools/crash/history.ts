import type pg from 'pg'
import { standingProblemsSql } from '../../src/ledger/problems.ts'
import { rateLimit, type Surroundings } from './environment.ts'
import type { Written } from './workload.ts'

/** A row of the outbox at the end. */
export interface OutboxRow {
  outboxId: string
  marker: string
  key: string | null
  status: string
  transactionId: string | null
  errorCode: string | null
  /** When the daemon last wrote the row's columns. */
  toldUs: number | null
}

/** A row of the outbox that names a document of the ERP. */
export interface DocumentRow extends OutboxRow {
  document: string
  error: string | null
}

/** A document after a transaction of the ERP: what must be sent for it. */
export interface DocumentVersion {
  document: string
  /** Text that only this version contains; null if the document was deleted. */
  marker: string | null
  /** The total that must arrive. */
  total: string | null
  /** True if the document meets the condition. */
  isSent: boolean
}

/** A submission in the ledger at the end, or the outcome of one that retention deleted. */
export interface LedgerRow {
  /** True if its steps are not known any more. */
  isPruned: boolean
  id: string
  outboxId: string
  state: string
  attempt: number
  resubmissions: number
  renewedKeys: number
  seq: number
  transactionId: string | null
  errorCode: string | null
  error: string | null
  reportDue: boolean
}

/** A step in the event log. Times are microseconds since 1970, because milliseconds would not be exact. */
export interface EventRow {
  submissionId: string
  atUs: number
  from: string | null
  to: string
  attempt: number
  cause: string
  message: string | null
  who: string
}

/** A POST in the service's own ledger. */
export interface Arrival {
  sequence: number
  marker: string
  amount: string | null
  arrivedUs: number
  idempotencyKey: string | null
  status: number | null
  faultId: number | null
  /** The transaction or order that the POST created; null if it had no effect. */
  effectId: string | null
  /** How the created transaction ends; null for an order or without a transaction. */
  errorCode: string | null
  doneUs: number | null
}

/** A time span whose commits were lost by a failover or a restore, in microseconds since 1970. */
export interface LostSpan {
  fromUs: number
  untilUs: number
}

/** The evidence at the end, from three independent sources: the ERP's table, the ledger and the service. */
export interface History {
  written: ReadonlyMap<string, Written>
  outbox: OutboxRow[]
  /** Completed rows of the outbox that never said `queued`: they were captured without a mark. */
  unmarked: number
  /** In the order of ids. */
  documents: { rows: DocumentRow[]; versions: DocumentVersion[] }
  ledger: LedgerRow[]
  events: EventRow[]
  arrivals: Arrival[]
  /** The largest number of requests in any window, measured at the service. */
  requestsMost: number
  requestsAllowed: number
  /** Number of 429 because the limit was exceeded. Does not count those that a fault caused. */
  throttledUnasked: number
  requests: number
  /** Submissions whose payload was pruned. */
  emptied: number
  /** Problems that the ledger reports to the operator. */
  problems: string[]
  /** Missing if no commit was lost. */
  lost?: readonly LostSpan[]
}

const us = (column: string) => `(extract(epoch from ${column}) * 1000000)::float8`

export async function gatherHistory(
  environment: Surroundings,
  written: ReadonlyMap<string, Written>,
): Promise<History> {
  const [outbox, unmarked, ledger, events, arrivals, counts, emptied, problems, rate] = await Promise.all([
    rows<OutboxRow>(
      environment.database,
      `select id::text as "outboxId", substring(payload::text from 'm[0-9]+\\.') as marker, key, status,
         transaction_id as "transactionId", error_code as "errorCode", ${us('updated_at')} as "toldUs" from outbox
       where not payload ? 'captured_in' order by id`,
    ),
    rows<{ n: number }>(
      environment.database,
      `select count(*)::int as n from outbox o where status = 'completed' and not exists (select from marked m where m.id = o.id)`,
    ),
    rows<LedgerRow>(
      environment.database,
      `select id, outbox_id as "outboxId", state, attempt, resubmissions, renewed_keys as "renewedKeys", seq::int,
         transaction_id as "transactionId", error_code as "errorCode", error, report_due as "reportDue",
         false as "isPruned"
       from outboxd.submission s
       union all
       select id, outbox_id, state, 0, 0, 0, 0, transaction_id, null, null, false, true
       from outboxd.crash_pruned
       order by seq`,
    ),
    rows<EventRow>(
      environment.database,
      `select submission_id as "submissionId", ${us('at')} as "atUs", from_state as "from", to_state as "to", attempt, cause, message, who
       from outboxd.submission_event order by id`,
    ),
    // If a SIGKILL cut a request in its body, the service's ledger has it without a body, and it had no effect.
    rows<Arrival>(
      environment.telemetry,
      `select sequence::float8 as sequence, substring(l.body from 'm[0-9]+\\.') as marker,
         substring(l.body from '"(?:total_amount|price)":([^,}]+)') as amount, ${us('l.arrived_at')} as "arrivedUs",
         idempotency_key as "idempotencyKey", status, fault_id::float8 as "faultId",
         coalesce(transaction_id, order_id::text) as "effectId", t.error_code as "errorCode", ${us('t.done_at')} as "doneUs"
       from sandbox.ledger l left join sandbox.transactions t on t.id = l.transaction_id
       where l.method = 'POST' and endpoint in ('submit', 'order') and (l.body <> '' or l.transaction_id is not null or l.order_id is not null)
       order by l.arrived_at, sequence`,
    ),
    rows<{ requests: number; throttledUnasked: number }>(
      environment.telemetry,
      `select count(*)::int as requests, (count(*) filter (where status = 429 and fault_id is null))::int as "throttledUnasked"
       from sandbox.ledger where path like '/api/%'`,
    ),
    rows<{ n: number }>(
      environment.database,
      'select count(*)::int as n from outboxd.submission where emptied_at is not null',
    ),
    rows<{ problem: string }>(
      environment.database,
      `select concat_ws(' ', kind, subject, detail) as problem from ${standingProblemsSql}`,
    ),
    fetch(`${environment.sandboxUrl}/_sandbox/rate?windowSeconds=${rateLimit.windowSeconds}`).then(
      async (response) => (await response.json()) as { maxArrived: number },
    ),
  ])
  return {
    written,
    outbox,
    unmarked: unmarked[0]?.n ?? 0,
    documents: await gatherDocuments(environment),
    ledger,
    events,
    arrivals,
    requestsMost: rate.maxArrived,
    requestsAllowed: rateLimit.requests,
    throttledUnasked: counts[0]?.throttledUnasked ?? 0,
    requests: counts[0]?.requests ?? 0,
    emptied: emptied[0]?.n ?? 0,
    problems: problems.map(({ problem }) => problem),
  }
}

async function gatherDocuments({ database }: Surroundings): Promise<History['documents']> {
  const [hasDocuments] = await rows<{ is: boolean }>(database, `select to_regclass('sale_version') is not null as is`)
  if (!hasDocuments?.is) return { rows: [], versions: [] }
  const [named, versions] = await Promise.all([
    rows<DocumentRow>(
      database,
      `select id::text as "outboxId", payload ->> 'id' as document, '' as marker, key, status, transaction_id as "transactionId",
         error_code as "errorCode", error, ${us('updated_at')} as "toldUs" from outbox where payload ? 'captured_in' order by outbox.id`,
    ),
    rows<DocumentVersion>(
      database,
      'select sale::text as document, marker, total::text, is_sent as "isSent" from sale_version order by id',
    ),
  ])
  return { rows: named, versions }
}

async function rows<Row extends pg.QueryResultRow>(pool: pg.Pool, text: string): Promise<Row[]> {
  return (await pool.query<Row>(text)).rows
}
