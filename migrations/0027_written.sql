-- Up Migration

-- Which transaction wrote the history last. Where its row says another than the server does (xmin), somebody has put a backup's rows back into
-- the tables that stood, which changes neither timeline nor oids. A migration that rewrites the table has to update the row after it.
alter table outboxd.history add column written_by xid8;

create function outboxd.note_writer() returns trigger language plpgsql as $$
begin
  new.written_by := pg_catalog.pg_current_xact_id();
  return new;
end $$;

create trigger note_writer before update on outboxd.history for each row execute function outboxd.note_writer();

update outboxd.history set id = id;
