-- Makes Oracle's to_send a foreign table of the small Postgres: docs/start/other-databases.md has the tables, the rules and the job.
-- Needs oracle_fdw and Oracle's Instant Client on the host of the small Postgres. Not tried by us.

create extension oracle_fdw;
create server erp foreign data wrapper oracle_fdw options (dbserver '//erp-host:1521/erp',
  isolation_level 'read_committed');   -- the default fails with ORA-08177
create user mapping for outbox_writer server erp options (user 'outbox', password '…');
create foreign table to_send (seq bigint options (key 'true') not null, order_no text, payload text,
  sent_at timestamp, status text, error text) server erp options (schema 'ERP', table 'TO_SEND');
grant select, update on to_send to outbox_writer;
