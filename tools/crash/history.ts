import type pg from 'pg'
import { appendLogsToChain } from '../../src/ledger/audit/chain.ts'
import { verifyChain } from '../../src/ledger/audit/verifyChain.ts'
import { rateLimit, type Surroundings } from './environment.ts'
import type { Written } from './workload.ts'

/** A row of the outbox as the ERP sees it in the end. */
export interface OutboxRow {
  outboxId: string
  marker: string
  key: string | null
  status: string
  transactionId: string | null
  errorCode: string | null
  /** When its columns of ours were written last. */
  toldUs: number | null
}

/** A row of the outbox that names a document of the ERP. */
export interface DocumentRow extends OutboxRow {
  document: string
  error: string | null
}

/** What a transaction of the ERP left of a document: what is to be sent for it from then on. */
export interface DocumentVersion {
  document: string
  /** Unique text that only this content has; null: the document was deleted. */
  marker: string | null
  /** As it must arrive. */
  total: string | null
  /** Whether it meets the condition. */
  isSent: boolean
}

/** A submission as our ledger has it in the end, or what it knows of one that was pruned. */
export interface LedgerRow {
  /** Its steps are not known any more: also of one that came back since, as its row said again that it waits. */
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

/** A step in our event log; times in microseconds since 1970, exact as text made into a number of milliseconds would not be. */
export interface EventRow {
  submissionId: string
  atUs: number
  from: string | null
  to: string
  attempt: number
  cause: string
  who: string
}

/** A POST as the service's own ledger has it. */
export interface Arrival {
  sequence: number
  marker: string
  amount: string | null
  arrivedUs: number
  idempotencyKey: string | null
  status: number | null
  faultId: number | null
  /** The transaction or order that it made; null where it had no effect. */
  effectId: string | null
  /** How the transaction it made ends: null for an order and where there is none. */
  errorCode: string | null
  doneUs: number | null
}

/** A span of time, in microseconds since 1970, whose commits a failover or a restore lost. */
export interface LostSpan {
  fromUs: number
  untilUs: number
}

/** All that is known at the end, from three independent hands: the ERP's table, our ledger, the service. */
export interface History {
  written: ReadonlyMap<string, Written>
  outbox: OutboxRow[]
  /** In the order of their ids; `notes`: what change capture could not capture. */
  documents: { rows: DocumentRow[]; versions: DocumentVersion[]; notes: number }
  ledger: LedgerRow[]
  events: EventRow[]
  arrivals: Arrival[]
  /** The most requests in any window, measured at the service. */
  requestsMost: number
  requestsAllowed: number
  /** 429 that the service gave because its limit was exceeded, rather than because it was told to. */
  throttledUnasked: number
  /** What is wrong with the logs' chain, which the daemons made among all that; null where nothing is. */
  chainBroken: string | null
  requests: number
  /** Submissions whose contents are gone. */
  emptied: number
  /** What the ledger would have an operator look at, in its own words. */
  problems: string[]
  /** Left out: nothing that was committed was lost. */
  lost?: readonly LostSpan[]
}

/** Chains what is left, and looks whether each event is in the chain, once and as it was. */
async function findChainBreak(ledger: pg.Pool, events: number, isPruned: boolean): Promise<string | null> {
  await appendLogsToChain(ledger, () => true)
  const { broken, entries, gone } = await verifyChain(ledger, null)
  const { rows } = await ledger.query<{ acts: number }>('select count(*)::int as acts from outboxd.operator_act')
  const expected = events + (rows[0]?.acts ?? 0)
  return (
    broken ??
    (entries === expected && gone > 0 === isPruned
      ? null
      : `it has ${entries} entries of ${expected}, ${gone} are gone`)
  )
}

const us = (column: string) => `(extract(epoch from ${column}) * 1000000)::float8`

export async function gatherHistory(
  environment: Surroundings,
  written: ReadonlyMap<string, Written>,
): Promise<History> {
  const [outbox, ledger, events, arrivals, counts, emptied, problems, rate] = await Promise.all([
    rows<OutboxRow>(
      environment.outbox,
      `select id::text as "outboxId", substring(payload::text from 'm[0-9]+\\.') as marker, key, status,
         transaction_id as "transactionId", error_code as "errorCode", ${us('updated_at')} as "toldUs" from outbox
       where not payload ? 'document' order by id`,
    ),
    rows<LedgerRow>(
      environment.ledger,
      `select id, outbox_id as "outboxId", state, attempt, resubmissions, renewed_keys as "renewedKeys", seq::int,
         transaction_id as "transactionId", error_code as "errorCode", error, report_due as "reportDue",
         exists (
           select from outboxd.submission_event e where e.submission_id = s.id and e.cause like 'back from what was pruned%'
         ) as "isPruned"
       from outboxd.submission s
       union all
       select id, outbox_id, state, 0, 0, 0, 0, transaction_id, null, null, false, true from outboxd.pruned_submission
       order by seq`,
    ),
    rows<EventRow>(
      environment.ledger,
      `select submission_id as "submissionId", ${us('at')} as "atUs", from_state as "from", to_state as "to", attempt, cause, who
       from outboxd.submission_event order by id`,
    ),
    // A request that a SIGKILL cut in its body is in the service's ledger without one, and had no effect.
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
      environment.ledger,
      'select count(*)::int as n from outboxd.submission where emptied_at is not null',
    ),
    rows<{ problem: string }>(
      environment.ledger,
      `select concat_ws(' ', kind, subject, detail) as problem from outboxd.problem
       union all select concat_ws(' ', 'put off', to_jsonb(s)) from outboxd.skipped_row s`,
    ),
    fetch(`${environment.sandboxUrl}/_sandbox/rate?windowSeconds=${rateLimit.windowSeconds}`).then(
      async (response) => (await response.json()) as { maxArrived: number },
    ),
  ])
  return {
    written,
    outbox,
    documents: await gatherDocuments(environment),
    ledger,
    events,
    arrivals,
    requestsMost: rate.maxArrived,
    requestsAllowed: rateLimit.requests,
    throttledUnasked: counts[0]?.throttledUnasked ?? 0,
    chainBroken: await findChainBreak(
      environment.ledger,
      events.length,
      ledger.some((row) => row.isPruned),
    ),
    requests: counts[0]?.requests ?? 0,
    emptied: emptied[0]?.n ?? 0,
    problems: problems.map(({ problem }) => problem),
  }
}

async function gatherDocuments({ outbox }: Surroundings): Promise<History['documents']> {
  const [hasDocuments] = await rows<{ is: boolean }>(outbox, `select to_regclass('sale_version') is not null as is`)
  if (!hasDocuments?.is) return { rows: [], versions: [], notes: 0 }
  const [named, versions, notes] = await Promise.all([
    rows<DocumentRow>(
      outbox,
      `select id::text as "outboxId", payload ->> 'id' as document, '' as marker, key, status, transaction_id as "transactionId",
         error_code as "errorCode", error, ${us('updated_at')} as "toldUs" from outbox where payload ? 'document' order by outbox.id`,
    ),
    rows<DocumentVersion>(
      outbox,
      'select sale::text as document, marker, total::text, is_sent as "isSent" from sale_version order by id',
    ),
    rows<{ n: number }>(outbox, 'select count(*)::int as n from outboxd_capture.error'),
  ])
  return { rows: named, versions, notes: notes[0]?.n ?? 0 }
}

async function rows<Row extends pg.QueryResultRow>(pool: pg.Pool, text: string): Promise<Row[]> {
  return (await pool.query<Row>(text)).rows
}
