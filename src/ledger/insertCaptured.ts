import { boundText, exactFields, textMax } from '../boundText.ts'
import type { CapturedRecord } from '../model.ts'
import type { Database } from '../postgres/database.ts'
import { type Actor, actorDetail } from './operator/acts.ts'
import { bringBack } from './retention/bringBack.ts'
import {
  anotherRow,
  findRepeated,
  isAcceptedEditSql,
  isSameRow,
  type RowConflict,
  twiceInBatch,
  wasUnread,
} from './sameRow.ts'

/**
 * Copies captured records into the ledger, in their order. A record that is there already stays as it is, but its
 * outbox row will be told its state again, since the crash that brought it here twice lost that. Where the row is another
 * than the one that the ledger knows by its id, or has its id twice here, nothing is written of it.
 *
 * Of a record that was pruned what is left comes back, in the state in which it had ended: it is not sent again.
 *
 * Keyed records start held: `releaseNext` frees those whose turn it is, in the same transaction.
 *
 * @param recoverer a person who takes them in that the ledger had lost: their rows say more than it knew, and are told what it says now
 * @returns the rows that are in conflict
 */
export async function insertCaptured(
  db: Database,
  records: readonly CapturedRecord[],
  who: string,
  recoverer: Actor | null = null,
): Promise<RowConflict[]> {
  const repeated = findRepeated(records.map(({ outboxId }) => outboxId))
  const single = records.filter(({ outboxId }) => !repeated.has(outboxId))
  const { rows } = await db.query<{ outboxId: string; state: string; recorded: string }>(
    `with record as (
       select * from json_to_recordset($1) as r(ord int, id uuid, "outboxId" text, type text, key text, resource text,
         payload text, body text, tracked boolean, "sendsOwnId" boolean, "idempotencyKey" uuid, "createdAt" timestamptz,
         stamp text, error text, doubt text, amounts jsonb)
     ), kept as (
       insert into outboxd.submission as s (id, outbox_id, type, key, resource, payload, body, tracked, sends_own_id,
         idempotency_key, recorded_at, row_stamp, state, held, due_at, error, ended_at, in_doubt, report_due)
       select id, "outboxId", type, key, resource, payload, body, tracked, "sendsOwnId", "idempotencyKey",
         coalesce("createdAt", clock_timestamp()), stamp,
         case when error is not null then 'rejected' when doubt is not null then 'uncertain' else 'queued' end,
         key is not null and coalesce(error, doubt) is null, case when coalesce(error, doubt) is null then now() end,
         coalesce(error, doubt), case when coalesce(error, doubt) is not null then clock_timestamp() end,
         error is null and doubt is not null, $3 or doubt is not null
       from record r where not exists (
         select from outboxd.pruned_submission p where p.outbox_id = r."outboxId" and p.outbox = outboxd.current_outbox()
       ) order by ord
       on conflict (outbox_id, outbox) do nothing
       returning s.id, s.state
     ), known as (
       select s.id, s.outbox_id, s.state, s.recorded_at, r.stamp,
         (${isSameRow} or ${isAcceptedEditSql})
         and (${wasUnread} or s.row_stamp is not null or r."createdAt" is not null or s.emptied_at is not null
           or s.payload is not distinct from r.payload) as same
       from record r join outboxd.submission s
         on s.outbox_id = r."outboxId" and s.outbox = outboxd.current_outbox() and s.id <> r.id
     ), seen as (
       update outboxd.submission s set report_due = true, row_stamp = coalesce(k.stamp, s.row_stamp) from known k
       where s.id = k.id and k.same and (not s.report_due or s.row_stamp is distinct from coalesce(k.stamp, s.row_stamp))
     ), pruned as (
       select s.*, (${isSameRow} or ${isAcceptedEditSql}) as same
       from record r join outboxd.pruned_submission s on s.outbox_id = r."outboxId" and s.outbox = outboxd.current_outbox()
     ), of_same as (
       select * from pruned where same
     ), ${bringBack('of_same', '$2')}, event as (
       insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who, detail, amounts)
       select id, null, state, 0, case when $3 then 'recovered as ' || state
         when state = 'queued' then 'captured' when state = 'uncertain' then 'captured as uncertain' else 'did not map' end, $2, case when $3 then ${actorDetail('$4', '$5')} end,
         amounts
       from kept join record using (id)
     )
     select outbox_id as "outboxId", state, to_char(recorded_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"') as recorded
     from (
       select outbox_id, state, recorded_at, same from known union all select outbox_id, state, recorded_at, same from pruned
     ) met where not same`,
    [JSON.stringify(single.map(stored)), who, recoverer !== null, recoverer?.reason, recoverer?.account],
  )
  return [
    ...rows.map(({ outboxId, state, recorded }) => ({ outboxId, detail: anotherRow(state, recorded) })),
    ...[...repeated].map((outboxId) => ({ outboxId, detail: twiceInBatch })),
  ]
}

const stored = ({ fieldErrors: _, ...record }: CapturedRecord, ord: number) => ({
  ord,
  ...exactFields(record),
  error: record.error === null ? null : boundText(record.error, textMax.errors),
})
