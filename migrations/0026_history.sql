-- Up Migration

-- Which history of the ledger the daemons have agreed to: a database that was restored, or fails over to a standby that lacked the last
-- commits, says `queued` of what was sent (docs/why/crashes.md, "A ledger that goes back in time"). One row.
create table outboxd.history (
  id                boolean     primary key default true check (id),
  system_id         text,                     -- null, as the next: the server does not let our role know
  timeline          bigint,
  database_oid      bigint      not null,
  ledger_oid        bigint      not null,     -- of the table of submissions: one that was restored from a dump is another
  agreed_at         timestamptz not null default clock_timestamp(),
  agreed_by         text        not null,
  marked_at         timestamptz not null default clock_timestamp(),   -- when a daemon last found it so
  marked_lsn        pg_lsn,                   -- up to where the log was safe then
  synchronous_until timestamptz,              -- until then every claim waits for a synchronous standby
  found_at          timestamptz,              -- since when it is known that it is another, or went back; nothing is sent
  found             text,
  found_by          text,
  may_go_on         boolean     not null default false,   -- every claim had been waited for: it goes on where nobody knows better
  doubtful_before   timestamptz,              -- rows that were recorded before may have been sent, and are captured as uncertain
  check ((found_at is null) = (found is null) and (found_at is null) = (found_by is null)),
  check (not may_go_on or found_at is not null)
);

-- What there is now. Asked for in parts: what our role may not execute is not to fail the rest.
create function outboxd.history_now(out system_id text, out timeline bigint, out database_oid bigint, out ledger_oid bigint,
  out safe_lsn pg_lsn, out has_target boolean) language plpgsql volatile as $$
begin
  select d.oid into database_oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database();
  ledger_oid := pg_catalog.to_regclass('outboxd.submission')::oid;
  if pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'execute') then
    select c.system_identifier::text into system_id from pg_catalog.pg_control_system() c;
  end if;
  if not pg_catalog.pg_is_in_recovery()
    and pg_catalog.has_function_privilege('pg_catalog.pg_current_wal_insert_lsn()', 'execute')
    and pg_catalog.has_function_privilege('pg_catalog.pg_current_wal_flush_lsn()', 'execute')
    and pg_catalog.has_function_privilege('pg_catalog.pg_walfile_name(pg_catalog.pg_lsn)', 'execute') then
    -- The checkpoint's timeline lags behind a promotion that need not wait for one.
    timeline := ('x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8))::bit(32)::bigint;
    safe_lsn := pg_catalog.pg_current_wal_flush_lsn();
  end if;
  -- Restored to a point in time, and not to the end.
  has_target := pg_catalog.concat(pg_catalog.current_setting('recovery_target', true),
    pg_catalog.current_setting('recovery_target_lsn', true), pg_catalog.current_setting('recovery_target_name', true),
    pg_catalog.current_setting('recovery_target_time', true), pg_catalog.current_setting('recovery_target_xid', true)) <> '';
end $$;

insert into outboxd.history (system_id, timeline, database_oid, ledger_oid, marked_lsn, agreed_by)
select system_id, timeline, database_oid, ledger_oid, safe_lsn, 'migrate' from outboxd.history_now();

-- Everybody pauses until a person, or the proof that nothing was lost, says that it may go on.
alter table outboxd.pause drop constraint pause_reason_check, drop constraint pause_check;
alter table outboxd.pause
  add constraint pause_reason_check check (reason in ('throttled', 'unavailable', 'unauthorized', 'unreachable', 'operator', 'history')),
  add constraint pause_check check (until is not null or reason in ('operator', 'history'));
