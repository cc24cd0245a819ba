-- Up Migration

-- What is wrong and stays so until somebody, or time, mends it: `outboxd status` and the metrics say each of these.
create table outboxd.problem (
  kind     text        not null,   -- src/model.ts, problemKinds
  subject  text        not null,   -- what it is about: a row's id, a type, a loop; empty for the whole
  detail   text        not null,   -- for the operator: what was seen
  since    timestamptz not null default clock_timestamp(),
  seen_at  timestamptz not null default clock_timestamp(),
  times    bigint      not null default 1,
  retry_at timestamptz,             -- null: nothing is tried again by itself
  primary key (kind, subject)
);
