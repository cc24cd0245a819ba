-- The outbox table, a promise to users (docs/start/outbox.md), created by `outboxd migrate --outbox`.
-- :table and :index are put in, quoted, from OUTBOX_TABLE. Safe to run again.
create table if not exists :table (
  id             bigint generated always as identity primary key,
  type           text not null,
  key            text,
  payload        jsonb not null,
  created_at     timestamptz not null default now(),
  -- From here on the columns are outboxd's to write.
  status         text not null default 'new'    -- new, then the submission's state; one that nobody knows is never sent
                   constraint outboxd_knows_status check (status in ('new', 'queued', 'sending', 'accepted', 'completed',
                     'failed', 'rejected', 'uncertain', 'discarded')),
  transaction_id text,
  error_code     text,
  error          text,
  updated_at     timestamptz
);
do $$
begin
  -- To create an index takes a lock, also where it turns out to be there.
  if not exists (select from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indrelid = to_regclass(:tableName) and c.relname = (parse_ident(:indexName))[1]::name) then
    create index if not exists :index on :table (id) where status = 'new';
  end if;
  -- Change capture writes the key of a document once in a transaction, whose time created_at is (docs/start/change-capture.md).
  if not exists (select from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indrelid = to_regclass(:tableName) and c.relname = (parse_ident(:capturedName))[1]::name) then
    create unique index if not exists :captured on :table (type, payload, created_at) where payload ? 'captured_in';
  end if;
end $$
