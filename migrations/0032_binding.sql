-- Up Migration

-- What a ledger is known by, and the service that it belongs to: the first daemon of this version says which, and `outboxd adopt --service`
-- says when that changes. Instances of 0.2.0 do not ask.
create table outboxd.ledger (
  is_only       boolean     primary key default true check (is_only),
  id            uuid        not null default gen_random_uuid(),
  base_url      text,
  auth_url      text,
  client_hash   text,                      -- of the ledger's id and the client's
  service_since timestamptz,
  service_by    text,
  check ((base_url is null) = (auth_url is null) and (auth_url is null) = (client_hash is null))
);
insert into outboxd.ledger default values;

-- What else an instance was given, by the names of variables and files; of instances of 0.2.0 nothing.
alter table outboxd.instance_setting add column given jsonb not null default '{}';

-- The outbox.yaml by which the daemons read and write the table: a digest of what it means.
alter table outboxd.outbox
  add column file_digest text,
  add column file_since  timestamptz,
  add column file_by     text;
