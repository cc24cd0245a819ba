-- Up Migration

-- Daemons no longer prove by watching that a promoted standby has every claim: LEDGER_STANDBY declares it. Daemons of 0.2.0 that still run
-- must not go on by their proof, because newer ones do not keep its promise (claims that wait for a standby until `synchronous_until`).
-- The columns stay for them: `synchronous_until`, `may_go_on` and `marked_lsn` can be dropped once no ledger is upgraded from 0.2.0.
create or replace function outboxd.note_writer() returns trigger language plpgsql as $$
begin
  new.written_by := pg_catalog.pg_current_xact_id();
  new.synchronous_until := null;
  new.may_go_on := false;
  return new;
end $$;

update outboxd.history set id = id;

-- What a daemon of 0.2.0 paused for: COMMITs that wait for no standby any more.
delete from outboxd.pause where reason = 'history' and not exists (select from outboxd.history where found_at is not null);
delete from outboxd.problem where kind = 'ledger_history' and subject = 'standby';
