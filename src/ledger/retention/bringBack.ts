/**
 * CTEs that bring all that is left of pruned submissions back, to tell their rows again how they ended; these are `back`.
 *
 * @param pruned a CTE with rows of outboxd.pruned_submission
 * @param who SQL: whose word it is
 */
export const bringBack = (pruned: string, who: string): string => `back as (
    insert into outboxd.submission (id, outbox_id, outbox, type, row_stamp, recorded_at, state, ended_at, transaction_id,
      idempotency_key, emptied_at, report_due)
    select id, outbox_id, outbox, type, row_stamp, recorded_at, state, ended_at, transaction_id,
      gen_random_uuid(), clock_timestamp(), true
    from ${pruned}
    on conflict (outbox_id, outbox) do nothing
    returning id, state
  ), back_event as (
    insert into outboxd.submission_event (submission_id, from_state, to_state, attempt, cause, who)
    select id, state, state, 0, 'back from what was pruned: its row says no more how it ended', ${who} from back
  ), forgotten as (
    delete from outboxd.pruned_submission p using ${pruned}
    where p.outbox_id = ${pruned}.outbox_id and p.outbox = ${pruned}.outbox
  )`
