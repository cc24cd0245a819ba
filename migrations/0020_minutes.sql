-- Up Migration

-- What became of records, by the minute (two days of them) and by the hour (29 days): for the plots of `outboxd console`. One daemon
-- at a time writes them when they are over; those that no daemon lived in are written later, from what the ledger still has.
create table outboxd.period (
  span        text        not null check (span in ('minute', 'hour')),
  began_at    timestamptz not null,
  -- Records that ended in it, by how they ended.
  completed   integer     not null,
  failed      integer     not null,
  rejected    integer     not null,
  uncertain   integer     not null,
  discarded   integer     not null,
  -- From the creation of their rows until they ended, but of those that a person discarded. Null: none did.
  wait_p50_ms float8,
  wait_p95_ms float8,
  -- Rows that waited to be sent when the minute was over, in the outbox and captured; of an hour the most that they were. Null: not known.
  waiting     bigint,
  primary key (span, began_at)
);

-- The rows of request_count, added up when their hour is over: these are kept for 29 days.
create table outboxd.request_hour (
  hour     timestamptz not null,   -- when it began
  kind     text        not null check (kind in ('submit', 'status')),
  requests bigint      not null,
  failed   bigint      not null,
  answered bigint      not null,
  slow     bigint      not null,
  primary key (hour, kind)
);

-- What else a slot's requests were last made for. A slot that is not free, is in nobody's hand and was spent on nothing is held back.
alter table outboxd.slot
  add column spent_on_polls  integer not null default 0,
  add column spent_on_others integer not null default 0;   -- for tokens, trials without a transaction, outboxd check
