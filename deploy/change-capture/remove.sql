-- Takes change capture away from every table, and its schema with it. Rows already in the outbox stay. Run it as the role that installed
-- it, or as a superuser: each trigger goes with its function.
drop schema if exists outboxd_capture cascade;
