-- Up Migration

-- Rows that were edited after they were taken, in tables whose stamps are hashes. The daemon looks at them each minute and
-- forgets those whose records have ended.
create table outboxd.edited_row (
  outbox_id text        not null,
  outbox    smallint    not null references outboxd.outbox (id) on delete cascade,
  noted_at  timestamptz not null default clock_timestamp(),
  primary key (outbox_id, outbox)
);
