-- The outbox table of design.md section 10, created by `outboxd migrate --outbox`.
-- :table, :trigger and :index are put in, quoted, from OUTBOX_TABLE. Safe to run again.
create table if not exists :table (
  id             bigint generated always as identity primary key,
  type           text not null,
  key            text,
  payload        jsonb not null,
  created_at     timestamptz not null default now(),
  -- From here on the columns are outboxd's to write.
  status         text not null default 'new',   -- new, then the submission's state
  transaction_id text,
  error_code     text,
  error          text,
  updated_at     timestamptz
);
create index if not exists :index on :table (id) where status = 'new';

-- Wakes the daemon as the inserting transaction commits; without it a row waits for the next sweep.
create or replace function outboxd_wake() returns trigger language plpgsql as $$
begin
  perform pg_notify('outboxd_outbox', '');
  return null;
end $$;
create or replace trigger :trigger after insert on :table for each statement execute function outboxd_wake()
