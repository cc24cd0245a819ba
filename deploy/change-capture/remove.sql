-- Takes change capture away from every table, and its schema with it. Rows already in the outbox stay. Run it as the role that installed
-- it, or as a superuser: each trigger goes with its function.
begin;
set local search_path = pg_catalog, pg_temp;
set local lock_timeout = '5s';
drop schema if exists outboxd_capture cascade;
commit;
