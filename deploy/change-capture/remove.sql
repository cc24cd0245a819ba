-- Takes change capture away from every table, and its schema with it. Rows already in the outbox stay.
begin;

do $$
declare
  captured regclass;
begin
  for captured in select tgrelid::regclass from pg_trigger where tgname = 'outboxd_capture_insert' loop
    perform outboxd_capture.remove(captured);
  end loop;
end $$;
drop schema if exists outboxd_capture cascade;

commit;
