-- Up Migration

-- What holds of the budget, for all instances: the smallest limit and the longest window that any of them was given.
create table outboxd.budget (
  id        boolean primary key default true check (id),   -- one row
  requests  integer not null check (requests > 0),
  window_ms bigint  not null check (window_ms > 0)
);

-- What each instance was given. One that stops takes its row with it; one that is silent for a minute no longer counts.
create table outboxd.instance_setting (
  instance_id        uuid        primary key,
  host               text        not null,
  requests           integer     not null,
  window_ms          bigint      not null,
  request_timeout_ms bigint      not null,
  key_on_failure     text        not null,
  said_at            timestamptz not null default clock_timestamp()
);

alter table outboxd.slot
  -- Retired: how many requests it stood for; until free_at they count, should the limit be raised again.
  add column retired_permits integer     not null default 0 check (retired_permits >= 0),
  -- When free_at was set: later than now, the clock has been set back since.
  add column set_at          timestamptz not null default '-infinity';
update outboxd.slot set set_at = clock_timestamp(),
  retired_permits = case when permits = 0 then (select greatest(max(permits), 1) from outboxd.slot) else 0 end
where free_at > clock_timestamp();

alter table outboxd.pause
  add column set_at timestamptz not null default clock_timestamp();   -- when until or probe_until was set

create function outboxd.note_set_at() returns trigger language plpgsql as $$
begin
  new.set_at := clock_timestamp();
  return new;
end $$;
create trigger note_set_at before insert or update of until, probe_until on outboxd.pause
  for each row execute function outboxd.note_set_at();

-- The database's clock as it was last seen, and what it was last seen to jump by.
create table outboxd.clock (
  id         boolean     primary key default true check (id),   -- one row
  seen_at    timestamptz not null,
  jumps      bigint      not null default 0,
  jump_ms    float8,
  jumped_at  timestamptz
);
