-- Up Migration

-- What was completed or discarded goes when its time is over (docs/run/retention.md, "The ledger's size"); everything else waits
-- for a person, and is refused here, whoever asks.

-- What stays of a submission that went: as much as keeps its row from being taken a second time.
create table outboxd.pruned_submission (
  outbox_id      text        not null,
  outbox         smallint    not null references outboxd.outbox (id),
  id             uuid        not null,
  type           text        not null,
  row_stamp      text,
  recorded_at    timestamptz not null,
  state          text        not null check (state in ('completed', 'discarded')),
  ended_at       timestamptz not null,
  transaction_id text,
  pruned_at      timestamptz not null default clock_timestamp(),
  primary key (outbox_id, outbox)
);

-- All rows that were ever taken, by what tells them again.
create view outboxd.taken_row as
  select outbox_id, outbox, type, row_stamp, recorded_at, state from outboxd.submission
  union all
  select outbox_id, outbox, type, row_stamp, recorded_at, state from outboxd.pruned_submission;

-- Null: its payload, body and result are as they were.
alter table outboxd.submission
  add column emptied_at timestamptz,
  add check (emptied_at is null or state in ('completed', 'discarded'));

-- What goes next, the oldest first; and what is emptied next.
create index submission_prunable on outboxd.submission (ended_at)
  where state in ('completed', 'discarded') and not report_due;
create index submission_emptiable on outboxd.submission (ended_at)
  where state in ('completed', 'discarded') and not report_due and not id_by_person and emptied_at is null;

create function outboxd.refuse_delete() returns trigger language plpgsql as $$
begin
  if old.state in ('completed', 'discarded') and not old.report_due then
    return old;
  end if;
  raise exception 'submission % is % and is not deleted: only what is completed or discarded, and told to its row, goes',
    old.id, old.state;
end $$;
create trigger only_ended before delete on outboxd.submission
  for each row execute function outboxd.refuse_delete();

create function outboxd.count_deleted() returns trigger language plpgsql as $$
begin
  insert into outboxd.state_delta select state, -count(*) from old_rows group by state;
  return null;
end $$;
create trigger count_deleted after delete on outboxd.submission
  referencing old table as old_rows for each statement execute function outboxd.count_deleted();

-- Events go with their submission, and with nothing else. Not valid: the constraint that it replaces has tried every row, and to
-- try all again would lock a large log for minutes.
alter table outboxd.submission_event
  drop constraint submission_event_submission_id_fkey,
  add constraint submission_event_submission_id_fkey
    foreign key (submission_id) references outboxd.submission (id) on delete cascade not valid;

-- What a replay has kept of what was sent before goes as the submission's own does.
create function outboxd.without_contents(detail jsonb) returns jsonb language sql immutable
  return detail #- '{former,body}' #- '{former,payload}';

create or replace function outboxd.refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and not exists (select from outboxd.submission where id = old.submission_id) then
    return old;
  end if;
  if tg_op = 'UPDATE' then
    old.detail := outboxd.without_contents(old.detail);
    if new is not distinct from old
      and exists (select from outboxd.submission where id = old.submission_id and emptied_at is not null) then
      return new;
    end if;
  end if;
  raise exception 'the event log is append-only';
end $$;

-- By default a table is vacuumed when a fifth of it is dead: of a ledger of 90 days at the limit, after three weeks, and then for
-- minutes. A fiftieth is a day or two, and each time as little.
alter table outboxd.submission set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
alter table outboxd.submission_event set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- Small tables that are written all the time: a thousand dead versions are many times what lives, whatever part of it they are.
alter table outboxd.slot set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
alter table outboxd.state_delta set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
