-- Removes change capture from every table, and its schema. Rows already in the outbox stay. Run it as the role that installed it, or as a
-- superuser: each trigger goes with its function.
do $$
begin
  perform pg_catalog.set_config('lock_timeout', '5s', true);
  drop schema if exists outboxd_capture cascade;
end $$;
