-- Up Migration

-- The outbox tables that this ledger has served, one after the other: an id names a row within one of them. A ledger of before
-- does not know its table: the first daemon that opens it says so.
create table outboxd.outbox (
  id            smallint    generated always as identity primary key,
  database_name text,
  table_name    text,                       -- schema.table
  id_column     text,
  start_id      text,                       -- rows with a lower id are none of ours
  start_at      timestamptz,                -- rows recorded before are none of ours
  since         timestamptz not null default clock_timestamp(),
  said_by       text,
  compared_at   timestamptz,                -- when its rows were last compared with the ledger
  is_current    boolean     not null default true,
  check ((database_name is null) = (table_name is null) and (table_name is null) = (id_column is null))
);
create unique index outbox_current on outboxd.outbox (is_current) where is_current;
insert into outboxd.outbox default values;

create function outboxd.current_outbox() returns smallint language sql stable
  return (select id from outboxd.outbox where is_current);

-- A constant default rewrites no row and counts none again: all rows of before are the first table's.
alter table outboxd.submission
  add column outbox smallint not null default 1 references outboxd.outbox (id),
  -- What tells the row from another of its id: when it was recorded, or a hash of it. Null: captured before 0006.
  add column row_stamp text,
  add constraint submission_outbox_row unique (outbox_id, outbox),
  drop constraint submission_outbox_id_key;
alter table outboxd.submission alter column outbox set default outboxd.current_outbox();

alter table outboxd.outbox_cursor
  add column epoch smallint not null default 1 references outboxd.outbox (id),
  drop constraint outbox_cursor_pkey,
  add primary key (epoch, outbox);
