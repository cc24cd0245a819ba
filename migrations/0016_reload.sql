-- Up Migration

-- `outboxd reload` counts up what it has asked of each instance; an instance sees it after its next sign of life, reads its files
-- again, and says up to which question it has done so and what was wrong with them.
alter table outboxd.instance
  add column reload_asked    integer not null default 0,
  add column reload_answered integer not null default 0,
  add column reload_problem  text;
