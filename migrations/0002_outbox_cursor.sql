-- Up Migration

-- How far an outbox table has been read whose rows do not say that they are taken (docs/start/outbox.md): all rows up to this
-- position are in the ledger, and no transaction is left that could still commit one before it.
create table outboxd.outbox_cursor (
  outbox      text        primary key,   -- oids of the database and the table, so that another table begins anew
  position    text[]      not null,      -- the row's sort values
  advanced_at timestamptz not null default clock_timestamp()
);
