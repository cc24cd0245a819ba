-- Takes change capture away from every table, and its schema with it. Rows already in the outbox stay.
begin;

do $$
declare
  each record;
begin
  for each in
    select t.tgname, format('%I.%I', s.nspname, c.relname) as on_table
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace s on s.oid = c.relnamespace
    join pg_proc p on p.oid = t.tgfoid join pg_namespace f on f.oid = p.pronamespace
    where f.nspname = 'outboxd_capture' and t.tgparentid = 0
  loop
    execute format('drop trigger %I on %s', each.tgname, each.on_table);
  end loop;
end $$;
drop schema if exists outboxd_capture cascade;

commit;
