-- Up Migration

-- An operator has said (adopt --same) that the ERP edits rows after they were taken: other contents tell no other row.
alter table outboxd.outbox add column rows_edited boolean not null default false;

alter table outboxd.outbox_cursor
  add column sequence_file text,    -- the sequence's file on disk: one that begins anew (restart identity) gets another
  add column same_upto     text[];  -- an operator has said that rows up to here are those that the ledger knows

-- An id names a row within one outbox alone.
alter table outboxd.skipped_row
  add column outbox smallint not null default outboxd.current_outbox() references outboxd.outbox (id);
drop index outboxd.skipped_row_id;
create unique index skipped_row_id on outboxd.skipped_row (hashtextextended(outbox_id, 0), outbox);
