-- What the ledger knows of rows whose records it may lack. One row, written by the first capture of an append-only table and by
-- retention.
create table outboxd.outbox_cursor (
  is_only         boolean     primary key default true check (is_only),
  -- Of an append-only table (docs/start/outbox.md): the ledger has all rows up to this number of the sequence, and no open transaction
  -- can commit another one there. It never goes back.
  position        bigint,
  sequence_file   text,          -- the sequence's file on disk: one that begins anew (restart identity) gets another
  -- Retention may have deleted the records of rows up to this number, recorded up to this time, and ended up to this time.
  pruned_number   bigint,
  pruned_recorded timestamptz,
  pruned_ended    timestamptz
);

-- Documents of the ERP. A row of the outbox may stand for one, whose content is read when the row is captured: that is a version of the
-- document (docs/start/change-capture.md). The row here is locked first, so versions are in the order of capture. It stays when the
-- document's records are deleted, and then has what was sent last.
create table outboxd.document (
  id           text   collate "C" primary key,   -- a hash of type and key, since keys may be long, and personal
  sent_seq     bigint,                           -- of the newest version that was sent and whose record was deleted: its place,
  sent_outbox_id text collate "C",               -- its row of the outbox,
  sent_digest  text,                             -- and its digest; null: nobody knows what was sent
  check ((sent_seq is null) = (sent_outbox_id is null) and (sent_digest is null or sent_seq is not null))
);

-- The ledger: one row a submission (docs/why/states.md draws the state machine).
create table outboxd.submission (
  id                 uuid        primary key,
  seq                bigint      not null generated always as identity,   -- order of capture
  outbox_id          text collate "C" not null,
  type               text collate "C" not null,
  key                text collate "C",
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

  transaction_id     text collate "C",
  probing            boolean     not null default false,  -- sending: its id is asked for, since no answer came
  accepted_at        timestamptz,
  polls              integer     not null default 0,
  fruitless          integer     not null default 0,      -- polls in a row without a usable answer
  unknown_since      timestamptz,                         -- the service answers 404 since
  foreign_status     text collate "C",                    -- a status that the interface does not have: the last poll's answer
  not_done_ms        bigint,                              -- age at which it was last seen unfinished
  done_ms            bigint,                              -- age at which it was first seen finished

  error_code         text collate "C",
  error              text,
  result             text,                                -- JSON text, the service's digits
  ended_at           timestamptz,
  report_due         boolean     not null default false,  -- the outbox row does not yet say so
  -- What the outbox's table refuses to be told, or a session of the ERP keeps locked, is put off by itself: the others go on.
  report_put_off     integer,                             -- the revision that is put off: a later one is told at once
  report_not_before  timestamptz,                         -- it is told again then
  report_failures    integer     not null default 0,      -- in a row

  row_created        text,                                -- the row's created_at as it was written: another time means another row of this id

  -- It ended failed or rejected, and yet the service may have the record: a replay could make it there twice.
  may_have_arrived   boolean     not null default false,
  -- The transaction id is an operator's word (resolve --arrived), not the service's.
  id_by_person       boolean     not null default false,

  answered_unavailable boolean   not null default false,  -- a POST got 503, or a request E003, and the service may have stored it nevertheless
  -- How often in a row its answers opened the breaker while submissions of others got through in between, and the last event by then:
  -- at the third time the record itself is the cause.
  opened_times       integer     not null default 0,
  opened_event       bigint,

  emptied_at         timestamptz,                         -- null: its payload, body and result are as they were
  erased_at          timestamptz,                         -- a person's data is erased on demand, in one step with its events

  document           text collate "C" references outboxd.document,   -- it is a version of this document; null: the row is the record
  -- What two versions are compared by; it outlives the request. Null: nobody knows what was sent.
  request_digest     text,
  -- Rejected, because an earlier version was sent and outbox.yaml does not say `changes: each`: a person decides.
  changed_after_sent boolean not null default false,
  -- The request left, or may have.
  was_sent           boolean not null generated always as (case
                       when state = 'queued' then in_doubt or answered_unavailable or resubmissions > 0 or renewed_keys > 0
                       when state in ('failed', 'rejected', 'discarded') then may_have_arrived and not changed_after_sent
                       else true end) stored,

  constraint submission_outbox_row unique (outbox_id),
  check (state not in ('queued', 'sending', 'accepted') or body is not null),
  check (not held or state = 'queued'),
  check ((state = 'queued') = (due_at is not null)),
  check ((state = 'sending' and not probing) = (claim_id is not null and instance_id is not null)),
  check (not probing or state = 'sending'),
  check (foreign_status is null or state in ('accepted', 'sending')),
  check (state <> 'accepted' or (transaction_id is not null and accepted_at is not null)),
  check ((state in ('completed', 'failed', 'rejected', 'uncertain', 'discarded')) = (ended_at is not null)),
  check (not may_have_arrived or state in ('failed', 'rejected', 'discarded')),
  check (not changed_after_sent or (state = 'rejected' and may_have_arrived)),
  check (not id_by_person or transaction_id is not null),
  check (opened_times = 0 or opened_event is not null),
  check (emptied_at is null or state in ('completed', 'discarded')),
  check (erased_at is null or (emptied_at is not null and num_nonnulls(key, payload, body, result, error) = 0))
) with (
  -- By default a table is vacuumed when a fifth of it is dead: of a ledger of 90 days at the limit, after three weeks, and then for
  -- minutes. A fiftieth is a day or two, and each time as little.
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);

-- What may be sent now, oldest first.
create index submission_ready on outboxd.submission (due_at, seq) where state = 'queued' and not held;
create index submission_sending on outboxd.submission (instance_id) where state = 'sending';
-- The head of each key's line is its first row here that blocks.
create index submission_line on outboxd.submission (key, seq)
  where key is not null and state in ('queued', 'sending', 'uncertain', 'failed', 'rejected');
create index submission_person on outboxd.submission (ended_at, seq) where state in ('failed', 'rejected', 'uncertain');
-- Two indexes, so that many reports that are put off do not lie in the way of those that are not.
create index submission_report on outboxd.submission (seq)
  where report_due and report_put_off is distinct from revision;
create index submission_report_again on outboxd.submission (report_not_before)
  where report_due and report_put_off = revision;
-- Unfinished business by the age of its outbox row, for the oldest unsent and the oldest accepted.
create index submission_unsent on outboxd.submission (recorded_at) where state in ('queued', 'sending');
-- Which statuses of transactions nobody knows, for `outboxd status`.
create index submission_foreign_status on outboxd.submission (foreign_status) where foreign_status is not null;
-- Whose an id is: the service may give one twice. Ids have at most 255 characters, which a btree entry holds.
create index submission_transaction on outboxd.submission (transaction_id, resource) where transaction_id is not null;
-- Processing times.
create index submission_done on outboxd.submission (resource, ended_at) where ended_at is not null and done_ms is not null;
-- What goes next, the oldest first; and what is emptied next.
create index submission_prunable on outboxd.submission (ended_at)
  where state in ('completed', 'discarded') and not report_due;
create index submission_emptiable on outboxd.submission (ended_at)
  where state in ('completed', 'discarded') and not report_due and not id_by_person and emptied_at is null;
-- The versions of a document.
create index submission_document on outboxd.submission (document, seq) where document is not null;
create index submission_changed_after_sent on outboxd.submission (seq) where changed_after_sent;

-- What a person looks a record up by: the idempotency key that the service logged, the record's key (a hash, since an entry of an
-- index ends at 2,704 bytes), and an id's last digits, for its first are those of all its time.
create index submission_idempotency_key on outboxd.submission (idempotency_key);
create index submission_key on outboxd.submission (hashtextextended(key, 0)) where key is not null;
create index submission_last_digits on outboxd.submission (right(id::text, 6));
-- Lists: of each state those that ended first, or last; and by type (its hash, as it is the ERP's text) or by code, which few records have.
create index submission_state on outboxd.submission (state, ended_at, seq) where ended_at is not null;
create index submission_under_way on outboxd.submission (state) where ended_at is null;
create index submission_type on outboxd.submission (state, hashtextextended(type, 0), ended_at, seq) where ended_at is not null;
create index submission_code on outboxd.submission (lower(error_code)) where error_code is not null;

-- How rare a key, a type or a code is. Of an index with a condition Postgres uses no statistics: it takes each of its values for one row in two
-- hundred, and to list the twenty records of a key among a million completed ones it read the whole index of that state, too (0.4 s).
create statistics outboxd.submission_key_rarity on (hashtextextended(key, 0)) from outboxd.submission;
create statistics outboxd.submission_type_rarity on (hashtextextended(type, 0)) from outboxd.submission;
create statistics outboxd.submission_code_rarity on (lower(error_code)) from outboxd.submission;

-- How many submissions are in each state: a sum of small differences, so that writers never wait for each other.
create table outboxd.state_delta (
  id    bigint generated always as identity primary key,   -- for publications of all tables
  state text   not null,
  delta bigint not null
) with (
  -- A small table that is written all the time: a thousand dead versions are many times what lives, whatever part of it they are.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000
);
create function outboxd.count_states() returns trigger language plpgsql as $$
begin
  case tg_op
    when 'INSERT' then
      insert into outboxd.state_delta (state, delta) select state, count(*) from new_rows group by state;
    when 'DELETE' then
      insert into outboxd.state_delta (state, delta) select state, -count(*) from old_rows group by state;
    else
      insert into outboxd.state_delta (state, delta)
      select state, sum(step) from (
        select state, 1 as step from new_rows union all select state, -1 from old_rows
      ) steps group by state having sum(step) <> 0;
  end case;
  return null;
end $$;
create trigger count_inserted after insert on outboxd.submission
  referencing new table as new_rows for each statement execute function outboxd.count_states();
create trigger count_updated after update on outboxd.submission
  referencing old table as old_rows new table as new_rows for each statement execute function outboxd.count_states();
create trigger count_deleted after delete on outboxd.submission
  referencing old table as old_rows for each statement execute function outboxd.count_states();

-- What a trigger refuses whoever asks; its argument says why.
create function outboxd.refuse() returns trigger language plpgsql as $$
begin
  raise exception '%', tg_argv[0];
end $$;

-- What was completed or discarded goes when its time is over (docs/run/retention.md, "The ledger's size"); everything else waits
-- for a person.
create trigger only_ended before delete on outboxd.submission
  for each row when (old.state not in ('completed', 'discarded') or old.report_due)
  execute function outboxd.refuse('only records that are completed or discarded, and written back, are deleted');

-- What happened, when, why and by whose hand. Rows are only ever added, and go with their submission.
create table outboxd.submission_event (
  id            bigint      generated always as identity primary key,
  submission_id uuid        not null references outboxd.submission (id) on delete cascade,
  at            timestamptz not null default clock_timestamp(),
  from_state    text,
  to_state      text        not null,
  attempt       integer     not null,
  cause         text        not null check (cause in (   -- src/model/eventCauses.ts
    -- the record enters the ledger; to_state says as what
    'captured',
    -- a request
    'claimed', 'never_sent', 'never_asked',
    -- what the answer to a submission means
    'accepted', 'rejected', 'uncertain', 'new_key', 'retried', 'resent', 'probed', 'duplicate_id',
    -- to a poll
    'pending', 'completed', 'lost', 'asked_again', 'resubmitted', 'had_arrived', 'had_not_arrived',
    -- to either
    'failed', 'new_token', 'paused',
    -- a newer version of the document takes its place
    'superseded',
    -- an operator's decision
    'replayed', 'resolved', 'withdrawn', 'discarded', 'recovered')),
  message       text,                      -- for people, where the cause does not say all; erased with the record
  actor         text        not null check (actor in ('outboxd', 'operator')),
  who           text        not null,      -- which daemon, or the operator's name
  detail        jsonb,
  -- The amounts of the request that a step made, as they are sent: by the fields' names, each digit as text. They stay when the request
  -- itself is emptied. Null: the step made none.
  amounts       jsonb
) with (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05
);
create index submission_event_submission on outboxd.submission_event (submission_id, id);
-- What persons did, among all the steps that the daemons wrote.
create index submission_event_person on outboxd.submission_event (id) where actor = 'operator';

-- Retention and `erase` take texts out of entries. Nothing else of an entry changes, and no text becomes another.
create trigger append_only before update of id, submission_id, at, from_state, to_state, attempt, cause, actor, who, amounts
  on outboxd.submission_event for each row execute function outboxd.refuse('the event log is append-only');
create trigger append_only_texts before update of message, detail on outboxd.submission_event for each row
  when (new.message <> coalesce(old.message, '') or not coalesce(old.detail, '{}') @> coalesce(new.detail, '{}'))
  execute function outboxd.refuse('the event log is append-only');
-- Entries go with their submission only.
create trigger append_only_rows before delete on outboxd.submission_event for each row when (pg_trigger_depth() = 0)
  execute function outboxd.refuse('the event log is append-only');

-- What operators did that is no step of one submission: who, when, why, and until when. Rows are only ever added; what was done to a
-- submission stands in its events.
create table outboxd.operator_act (
  id      bigint      generated always as identity primary key,
  at      timestamptz not null default clock_timestamp(),
  act     text        not null check (act in   -- the command, or what somebody did in the console
            ('pause', 'resume', 'resume --all', 'adopt', 'capture', 'prune', 'erase',
             'recover', 'show', 'search', 'download',
             'settings')),   -- a daemon set the ledger's settings; the reason says why
  who     text        not null,
  account text,                   -- user@host that gave the command
  reason  text,
  until   timestamptz,            -- of a pause: when it ends by itself
  detail  jsonb
);

create trigger append_only before update or delete on outboxd.operator_act
  for each row execute function outboxd.refuse('the log of operators'' acts is append-only');

create table outboxd.instance (
  id              uuid        primary key,
  started_at      timestamptz not null default clock_timestamp(),
  unbroken_since  timestamptz not null default clock_timestamp(),   -- since then no heartbeat was missing
  beat_at         timestamptz not null default clock_timestamp(),
  beats           bigint      not null default 1,   -- heartbeats so far: the daemon must find the last one that it wrote
  stopped_at      timestamptz,                      -- it stopped by itself, and left nothing behind
  version         text        not null,
  host            text        not null,
  settings        jsonb       not null default '{}',  -- what it was given, as in outboxd.ledger
  problems        jsonb       not null default '[]'   -- what was wrong with it at the last heartbeat: kind, part, detail, ageMs
);

-- Requests to the service that count against the limit: one row each, inserted before the request may leave. A request counts until a
-- window after over_at (docs/why/budget.md has the proof). Rows that no longer count are deleted after an hour.
create table outboxd.request (
  id          bigint      generated always as identity primary key,
  instance_id uuid        not null,         -- the daemon or command that inserted it
  purpose     text        not null check (purpose in
                ('submission', 'poll', 'token', 'question', 'other_client')),   -- question: asks for no transaction of ours
  claimed_at  timestamptz not null default clock_timestamp(),
  over_at     timestamptz not null,         -- when it is over at the latest; its answer sets this to now; -infinity: it never left
  submission_id uuid,                       -- poll: of which record
  claim_id    uuid,                         -- poll: the claim that fetched its job, until its outcome is written
  check (claim_id is null or submission_id is not null)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
create index request_over_at on outboxd.request (over_at) include (purpose);
create index request_poll on outboxd.request (submission_id) where claim_id is not null;

-- Why all instances send nothing: the breaker (src/model/breaker.ts says how it works), an operator, or a ledger that may have
-- lost data. For `history` everybody pauses until a person says `recover`.
create table outboxd.pause (
  reason      text        primary key check (reason in ('breaker', 'operator', 'history', 'standby')),
  since       timestamptz not null default clock_timestamp(),   -- of a closed breaker: since when it is closed
  until       timestamptz,                      -- null: until a person acts. Then the breaker is open for one request, the trial
  detail      text        not null,             -- for people: what was seen
  set_at      timestamptz not null default clock_timestamp(),   -- when until or trial_until was set
  -- The breaker's. It has no row before it opens for the first time.
  state       text        check (state in ('closed', 'open', 'half_open')),
  cause       text        check (cause in ('throttled', 'unavailable', 'unauthorized', 'unreachable')),
  level       integer,                          -- step of the backoff, from 0: trials in a row that failed
  opened_by   uuid,                             -- the record whose answer opened it; null: no record can be the cause
  is_of_submission boolean,                     -- an answer to a submission opened it since it was closed: a GET proves too little
  is_in_doubt boolean,                          -- it left a record in doubt since then, so that the next submission is a risk
  has_get_worked boolean,                       -- half-open: polls go on, and the next trial is a submission
  doubts      integer,                          -- trials of submissions that ended in doubt
  trial       bigint,                           -- half-open: the request that is the trial,
  trial_until timestamptz,                      -- and when it is over at the latest: then another may be
  check ((reason = 'breaker') = (state is not null)),
  check (state is null or num_nulls(level, is_of_submission, is_in_doubt, has_get_worked, doubts) = 0),
  check (state is null or (cause is null) = (state = 'closed')),
  check ((trial is null) = (trial_until is null)),
  check (trial is null or state = 'half_open'),
  check (not has_get_worked or state = 'half_open')
);

-- The pauses that stand. An operator's ends by itself. The breaker's ends when its trial has worked; if only a submission is missing,
-- it holds nothing up.
create view outboxd.standing_pause as
select coalesce(cause, reason) as reason, since, greatest(until, trial_until) as until, detail, set_at from outboxd.pause
where case reason
  when 'breaker' then state = 'open' or state = 'half_open' and (trial is not null or until is null or not has_get_worked)
  when 'operator' then until is null or until > clock_timestamp()
  else true
end;

-- What is wrong and stays so until somebody, or time, mends it: `outboxd status` and the metrics say each of these.
create table outboxd.problem (
  kind     text        not null,   -- src/model/problem.ts, problemKinds
  subject  text collate "C" not null,   -- what it is about: a row's id, a type, a loop; empty for the whole
  detail   text        not null,   -- for the operator: what was seen
  since    timestamptz not null default clock_timestamp(),
  seen_at  timestamptz not null default clock_timestamp(),
  times    bigint      not null default 1,
  retry_at timestamptz,             -- null: nothing is tried again by itself. Of row_skipped: the row is left out of claims, and then tried alone
  primary key (kind, subject)
);

-- Requests made for records, by the minute, for the service's two targets (docs/reference/interface.md, section 8). Each instance writes
-- rows of its own, so that none waits for another. After two days the rows of an hour are added up: kept for 29 days.
create table outboxd.request_count (
  minute      timestamptz not null,   -- when it began; of an hour that is added up: its first minute
  kind        text        not null check (kind in ('submit', 'status')),
  instance_id uuid        not null,   -- all zeros: an hour
  requests    integer     not null,
  failed      integer     not null,   -- answered 500 and above, or with E003, or not at all
  answered    integer     not null,   -- answers and timeouts: all but connections that failed
  slow        integer     not null,   -- of those, the ones that took longer than 2 s
  primary key (minute, kind, instance_id),
  check (failed between 0 and requests and answered between 0 and requests and slow between 0 and answered)
) with (fillfactor = 50);

-- The ledger serves one outbox table and one service, for life. The first daemon writes which; `outboxd adopt --same` says that the same
-- table or service has a new name, address or client id. A claim of requests locks this row, so that claims count one
-- after the other.
create table outboxd.ledger (
  is_only       boolean     primary key default true check (is_only),
  id            uuid        not null default gen_random_uuid(),
  since         timestamptz not null default clock_timestamp(),
  base_url      text,
  auth_url      text,
  client_hash   text,                      -- of the ledger's id and the client's
  service_since timestamptz,
  service_by    text,
  table_name    text,                      -- schema.table
  id_column     text,
  table_by      text,
  start_given   text,                      -- `start` of outbox.yaml at the first start; what it means follows
  start_id      text,                      -- rows with a lower id are none of ours
  start_at      timestamptz,               -- rows recorded before are none of ours
  -- What all daemons act on: the values of variables as texts, by name, and the digests of outbox.yaml and the mapping files. Null
  -- before the first daemon. src/ledger/settings.ts says when a daemon with other ones sets its own.
  settings      jsonb,
  settings_since timestamptz,
  settings_by   text,
  -- The service's limit: requests in any window.
  rate_limit    integer     generated always as ((settings ->> 'RATE_LIMIT_REQUESTS')::integer) stored,
  window_ms     bigint      generated always as (((settings ->> 'RATE_LIMIT_WINDOW_SECONDS')::numeric * 1000)::bigint) stored,
  -- The whole limit counts as spent by requests that are over then: the ledger went back in time, and may have forgotten requests.
  spent_at      timestamptz,
  spent_set_at  timestamptz,               -- when spent_at was set
  -- The identity: where the ledger lives, and which transaction wrote this row last. In a database that was restored, copied or
  -- failed over, one of these differs (docs/why/guarantee.md, "A ledger that goes back in time"). Null before the first daemon.
  system_id     text,                      -- null, as the timeline: the server does not let our role know
  timeline      text,
  database_oid  bigint,
  table_oid     bigint,
  written_by    xid8        not null default pg_current_xact_id(),
  lost_at       timestamptz,               -- since then all is paused, because the ledger may have lost committed data
  recovered_at  timestamptz,               -- when an operator last said that it may go on
  check ((base_url is null) = (auth_url is null) and (auth_url is null) = (client_hash is null)),
  check ((table_name is null) = (id_column is null)),
  check ((settings is null) = (settings_by is null)),
  check (rate_limit > 0 and window_ms > 0),
  check ((database_oid is null) = (table_oid is null))
);
insert into outboxd.ledger default values;

-- The budget: how many requests count now, and how many may be made. Requests above the limit, which was lowered, are not counted.
-- statement_timestamp(), because an index scan cannot use clock_timestamp(), and now() may be older than the lock of the claim.
create view outboxd.budget as
select l.rate_limit, l.window_ms, used.requests as used, l.rate_limit - used.requests as free,
  case when used.requests = l.rate_limit then greatest(counted.first_over_at, l.spent_at) + l.window_ms * interval '1 ms' end
    as next_free_at   -- null: a request may be made now
from outboxd.ledger l,
lateral (
  select count(*)::integer as requests, min(over_at) as first_over_at from (
    select over_at from outboxd.request
    where over_at > statement_timestamp() - l.window_ms * interval '1 ms'
    order by over_at desc limit l.rate_limit
  ) newest
) counted,
lateral (
  select case when l.spent_at > statement_timestamp() - l.window_ms * interval '1 ms' then l.rate_limit
    else counted.requests end as requests
) used;

-- COPY and pg_restore bring back the number of an earlier transaction. No later update hides that: only one that sets the column does.
-- After a change that rewrites the table, a migration has to set it.
create function outboxd.note_writer() returns trigger language plpgsql as $$
begin
  if new.written_by = old.written_by and old.written_by::text::numeric % 4294967296 = old.xmin::text::numeric then
    new.written_by := pg_catalog.pg_current_xact_id();
  end if;
  return new;
end $$;
create trigger note_writer before update on outboxd.ledger for each row execute function outboxd.note_writer();

-- Compares the identity with the server's, and looks for a daemon's heartbeat and request (null: looks for none). What our role may not
-- read of the server is null, and does not fail the rest. Stable, so that a statement which writes a heartbeat sees the one before.
-- Returns no row if the ledger's row is gone.
create function outboxd.history(instance uuid, beats bigint, request bigint,
  out lost_at timestamptz, out recovered_at timestamptz, out is_new boolean, out difference text, out missing text,
  out system_id text, out timeline text, out database_oid bigint, out table_oid bigint)   -- the server's
  returns setof record language plpgsql stable as $$
begin
  select d.oid into database_oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database();
  table_oid := 'outboxd.ledger'::pg_catalog.regclass::pg_catalog.oid;
  if pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'execute') then
    select c.system_identifier into system_id from pg_catalog.pg_control_system() c;
  end if;
  if not pg_catalog.pg_is_in_recovery()
    and pg_catalog.has_function_privilege('pg_catalog.pg_current_wal_insert_lsn()', 'execute')
    and pg_catalog.has_function_privilege('pg_catalog.pg_walfile_name(pg_catalog.pg_lsn)', 'execute') then
    -- The checkpoint's timeline is seconds late after a promotion.
    timeline := left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8);
  end if;
  return query select l.lost_at, l.recovered_at, l.database_oid is null,
    case
      when l.system_id <> history.system_id then 'system'
      when l.database_oid <> history.database_oid then 'database'
      when l.table_oid <> history.table_oid then 'table'
      when l.written_by::text::numeric % 4294967296 <> l.xmin::text::numeric then 'writer'
      when l.timeline <> history.timeline then 'timeline'
    end,
    case
      when history.beats is not null and not exists (
        select from outboxd.instance i where i.id = history.instance and i.beats >= history.beats
      ) then 'heartbeat'
      when history.request is not null and not exists (
        select from outboxd.request r where r.id = history.request and r.instance_id = history.instance
      ) then 'request'
    end,
    history.system_id, history.timeline, history.database_oid, history.table_oid
  from outboxd.ledger l;
end $$;
