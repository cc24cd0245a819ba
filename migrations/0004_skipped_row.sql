-- Up Migration

-- Rows of the outbox that could neither be captured nor rejected, or whose table refuses our mark. They are left out of
-- claims and tried again alone, each after a while of its own.
create table outboxd.skipped_row (
  outbox_id text        not null,
  captured  boolean     not null,             -- in the ledger: only the mark is missing, and nobody behind it has to wait
  times     integer     not null default 1,
  retry_at  timestamptz not null
);
-- A hash, since an id may be as long as the ERP likes and a btree entry ends at 2,704 bytes.
create unique index skipped_row_id on outboxd.skipped_row (hashtextextended(outbox_id, 0));

-- The record types that an instance has mapping files for, written with its heartbeat; null: its version does not say.
alter table outboxd.instance add column types text[];
