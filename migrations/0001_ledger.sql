-- Up Migration

-- The ledger: one row a submission (docs/why/states.md draws the state machine).
create table outboxd.submission (
  id                 uuid        primary key,
  seq                bigint      generated always as identity,   -- order of capture
  outbox_id          text        not null unique,
  type               text        not null,
  key                text,
  resource           text        check (resource in ('data', 'orders')),   -- null: no mapping for the type
  payload            text,                   -- as the ERP wrote it, every digit; null where it could not be read
  body               text,                   -- the frozen request
  tracked            boolean     not null default true,
  sends_own_id       boolean     not null default false,  -- the body carries the submission's id: policy probe can ask for it
  recorded_at        timestamptz not null,   -- the outbox row's created_at
  captured_at        timestamptz not null default clock_timestamp(),

  state              text        not null check (state in
                       ('queued', 'sending', 'accepted', 'completed', 'failed', 'rejected', 'uncertain', 'discarded')),
  revision           integer     not null default 0,      -- goes up with every transition
  held               boolean     not null default false,  -- waits for an earlier record of its key
  due_at             timestamptz,                         -- queued: not before
  attempt            integer     not null default 0,      -- goes up with every request that may have left
  idempotency_key    uuid        not null,
  claim_id           uuid,                                -- sending: which claim put it on the wire
  instance_id        uuid,                                -- sending: whose
  sent_at            timestamptz,                         -- when the last attempt was committed to
  in_doubt           boolean     not null default false,  -- an attempt before the next one may have arrived
  server_errors      integer     not null default 0,
  renewed_keys       integer     not null default 0,
  resubmissions      integer     not null default 0,
  repeated_after_401 boolean     not null default false,

  transaction_id     text,
  probing            boolean     not null default false,  -- sending: its id is asked for, since no answer came
  job_id             uuid,                                -- the pg-boss job of the next poll
  accepted_at        timestamptz,
  poll_at            timestamptz,
  polls              integer     not null default 0,
  fruitless          integer     not null default 0,      -- polls in a row without a usable answer
  unknown_since      timestamptz,                         -- the service answers 404 since
  not_done_ms        bigint,                              -- age at which it was last seen unfinished
  done_ms            bigint,                              -- age at which it was first seen finished

  error_code         text,
  error              text,
  result             text,                                -- JSON text, the service's digits
  ended_at           timestamptz,
  report_due         boolean     not null default false,  -- the outbox row does not yet say so

  check (state not in ('queued', 'sending', 'accepted') or body is not null),
  check (not held or state = 'queued'),
  check ((state = 'queued') = (due_at is not null)),
  check ((state = 'sending' and not probing) = (claim_id is not null and instance_id is not null)),
  check (not probing or state = 'sending'),
  check ((state = 'accepted' or probing) = (job_id is not null and poll_at is not null)),
  check (state <> 'accepted' or (transaction_id is not null and accepted_at is not null)),
  check ((state in ('completed', 'failed', 'rejected', 'uncertain', 'discarded')) = (ended_at is not null))
);

-- What may be sent now, oldest first.
create index submission_ready on outboxd.submission (due_at, seq) where state = 'queued' and not held;
create index submission_sending on outboxd.submission (instance_id) where state = 'sending';
create index submission_polled on outboxd.submission (poll_at) where job_id is not null;
-- The head of each key's line is its first row here that blocks.
create index submission_line on outboxd.submission (key, seq)
  where key is not null and state in ('queued', 'sending', 'uncertain', 'failed', 'rejected');
create index submission_person on outboxd.submission (ended_at, seq) where state in ('failed', 'rejected', 'uncertain');
create index submission_ended on outboxd.submission (ended_at) where ended_at is not null;
create index submission_report on outboxd.submission (seq) where report_due;
-- Unfinished business by the age of its outbox row, for the oldest unsent and the oldest accepted.
create index submission_unsent on outboxd.submission (recorded_at) where state in ('queued', 'sending');

-- What happened, when, why and by whose hand. Rows are only ever added.
create table outboxd.submission_event (
  id            bigint      generated always as identity primary key,
  submission_id uuid        not null references outboxd.submission (id),
  at            timestamptz not null default clock_timestamp(),
  from_state    text,
  to_state      text        not null,
  attempt       integer     not null,
  cause         text        not null,
  who           text        not null,
  detail        jsonb
);
create index submission_event_submission on outboxd.submission_event (submission_id, id);

create function outboxd.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the event log is append-only';
end $$;
create trigger append_only before update or delete on outboxd.submission_event
  for each row execute function outboxd.refuse_change();

-- How many submissions are in each state: a sum of small differences, so that writers never wait for each other.
create table outboxd.state_delta (
  state text   not null,
  delta bigint not null
);
create function outboxd.count_inserted() returns trigger language plpgsql as $$
begin
  insert into outboxd.state_delta select state, count(*) from new_rows group by state;
  return null;
end $$;
create function outboxd.count_updated() returns trigger language plpgsql as $$
begin
  insert into outboxd.state_delta
  select state, sum(step) from (
    select state, 1 as step from new_rows union all select state, -1 from old_rows
  ) steps group by state having sum(step) <> 0;
  return null;
end $$;
create trigger count_inserted after insert on outboxd.submission
  referencing new table as new_rows for each statement execute function outboxd.count_inserted();
create trigger count_updated after update on outboxd.submission
  referencing old table as old_rows new table as new_rows for each statement execute function outboxd.count_updated();

-- The budget: a slot is the right to make `permits` requests; it is taken until free_at (docs/why/budget.md has the proof).
create table outboxd.slot (
  id       integer     primary key,
  permits  integer     not null check (permits >= 0),   -- 0: retired, the limit was lowered
  free_at  timestamptz not null default '-infinity',
  lease    bigint      not null default 0,              -- goes up with every taking: a late holder changes nothing
  taken_by uuid,
  spent_on_submissions integer not null default 0        -- of the requests last made with it
) with (fillfactor = 50);

create table outboxd.pause (
  reason      text        primary key check (reason in
                ('throttled', 'unavailable', 'unauthorized', 'unreachable', 'operator')),
  since       timestamptz not null default clock_timestamp(),
  until       timestamptz,                  -- null: until an operator resumes
  level       integer     not null default 0,   -- step of the backoff, from 0
  detail      text        not null,
  probe_until timestamptz,                  -- until then the trial is somebody's
  check (until is not null or reason = 'operator')
);

create table outboxd.instance (
  id         uuid        primary key,
  started_at timestamptz not null default clock_timestamp(),
  beat_at    timestamptz not null default clock_timestamp(),
  version    text        not null,
  host       text        not null
);
