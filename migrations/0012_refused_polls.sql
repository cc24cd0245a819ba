-- Up Migration

-- How often in a row the polls of a transaction were refused with a pause while others got through, and the last event by
-- then: a transaction whose polls alone are refused backs off alone.
alter table outboxd.submission
  add column refused_polls  integer not null default 0,
  add column refused_event  bigint,
  add check (refused_polls = 0 or refused_event is not null);
