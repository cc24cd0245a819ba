import type { Resource } from '../../record.ts'
import type { Database } from '../database.ts'

/** A captured record, mapped or refused: what the ledger keeps of it from the start. */
export interface KeptRecord {
  id: string
  outboxId: string
  type: string
  key: string | null
  resource: Resource | null
  payload: string | null
  /** The frozen request; null where the record was rejected. */
  body: string | null
  tracked: boolean
  sendsOwnId: boolean
  idempotencyKey: string
  /** ISO 8601 text; null counts as now. */
  createdAt: string | null
  /** Why it was rejected; null where it is queued. */
  error: string | null
}

/**
 * Copies captured records into the ledger, in their order. A record that is there already stays as it is, but its
 * outbox row will be told its state again, since the crash that brought it here twice lost that.
 *
 * Keyed records start held: `releaseHeads` frees those whose turn it is, in the same transaction.
 */
export async function keepRecords(db: Database, records: readonly KeptRecord[], who: string): Promise<void> {
  await db.query(
    `with record as (
       select * from json_to_recordset($1) as r(ord int, id uuid, "outboxId" text, type text, key text, resource text,
         payload text, body text, tracked boolean, "sendsOwnId" boolean, "idempotencyKey" uuid, "createdAt" timestamptz,
         error text)
     ), kept as (
       insert into outboxd.submission as s (id, outbox_id, type, key, resource, payload, body, tracked, sends_own_id,
         idempotency_key, recorded_at, state, held, due_at, error, ended_at)
       select id, "outboxId", type, key, resource, payload, body, tracked, "sendsOwnId", "idempotencyKey",
         coalesce("createdAt", clock_timestamp()), case when error is null then 'queued' else 'rejected' end,
         key is not null and error is null, case when error is null then now() end,
         error, case when error is not null then clock_timestamp() end
       from record order by ord
       on conflict (outbox_id) do nothing
       returning s.id, s.state
     ), seen as (
       update outboxd.submission s set report_due = true from record r
       where s.outbox_id = r."outboxId" and not s.report_due and s.id <> r.id
     )
     insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
     select id, null, state, 0, case state when 'queued' then 'captured' else 'did not map' end, $2 from kept`,
    [JSON.stringify(records.map((record, ord) => ({ ord, ...record }))), who],
  )
}
