-- Wakes the daemon as the inserting transaction commits; without it a row waits for the next sweep, a second at most.
-- :table, :trigger and :wake are put in, quoted, from OUTBOX_TABLE and the search path. Safe to run again; a trigger that is there needs no lock.
--
-- Every NOTIFY takes one lock of the whole cluster as it commits, so it is sent only where somebody sleeps: a daemon that sleeps
-- holds this lock exclusively. Where it is not held we share it until our transaction ends, and the daemon cannot fall
-- asleep before: it looks once more afterwards, and sees our rows. Nobody waits for it, and nobody needs rights for it.
-- The first number stands for outboxd ('outb'), the second for the table; src/postgres/listener.ts has the other side.
-- CREATE OR REPLACE keeps the owner of a function that is there, who could change it later: it runs with each writer's rights.
do $$
begin
  if exists (select from pg_proc p join pg_roles r on r.oid = p.proowner
    where p.oid = to_regprocedure(:wakeName || '()') and not r.rolsuper and r.rolname <> current_user
      and not exists (select from pg_class where oid = to_regclass(:tableName) and relowner = r.oid)) then
    raise exception 'The function outboxd_wake() belongs to a role that does not own the outbox table, and would run with the rights of each writer. Drop it, then migrate again.';
  end if;
end $$;
create or replace function :wake() returns trigger language plpgsql as $$
begin
  if not pg_catalog.pg_try_advisory_xact_lock_shared(1869968482, tg_relid::int) then
    perform pg_catalog.pg_notify('outboxd_outbox', '');
  end if;
  return null;
end $$;
do $$
begin
  if not exists (select from pg_trigger where tgrelid = to_regclass(:tableName)::oid and tgfoid = to_regprocedure(:wakeName || '()')::oid) then
    create or replace trigger :trigger after insert on :table for each statement execute function :wake();
  end if;
end $$
