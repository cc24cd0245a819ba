-- Up Migration

-- A pause that a trial has ended stays until a record has got through as well: brought back by the first record after the
-- trial, it climbs its ladder on.
alter table outboxd.pause add column cleared_at timestamptz;

-- The pause that a record's own answers called for, how often in a row while others got through, and what had passed by
-- then: a record that alone keeps meeting it is itself the cause.
alter table outboxd.submission
  add column met_pause      text check (met_pause in ('throttled', 'unavailable', 'unauthorized', 'unreachable')),
  add column met_times      integer not null default 0,
  add column met_passages   bigint,
  add check ((met_pause is null) = (met_times = 0)),
  add check (met_pause is null or met_passages is not null);

-- How many records the service itself has answered, by what they had met before: a pause, or nothing ('').
create table outboxd.passage (
  resource text   not null check (resource in ('data', 'orders')),
  met      text   not null,
  count    bigint not null,
  at       bigint not null,   -- of all passages of the resource, the number of its last
  primary key (resource, met)
) with (fillfactor = 50);
