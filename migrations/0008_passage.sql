-- Up Migration

-- A pause that a trial has ended stays until a record has got through as well: brought back by the first record after the
-- trial, it goes on to its next step.
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

-- Refusals in a row of one status and body, none of them the service's judgement under a code: ten records that share no
-- key are not all wrong in the same way, so it is taken for something in between, or for our configuration.
create table outboxd.refusal_run (
  resource    text    primary key check (resource in ('data', 'orders')),
  fingerprint text    not null,
  said        text    not null,
  submissions uuid[]  not null,                -- whose refusals make the run
  is_mass     boolean not null default false   -- it was taken so: the next refusal like it says so at once
);

-- Refusals that an operator takes at their word for a while.
create table outboxd.believed_refusal (
  fingerprint text        primary key,
  said        text        not null,
  until       timestamptz not null
);
