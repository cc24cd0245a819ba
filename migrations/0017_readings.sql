-- Up Migration

-- How often the table was read from its beginning again, since rows that waited were found behind a position. It is part of what a
-- position is known by: all instances leave theirs at once.
alter table outboxd.outbox add column readings integer not null default 0;
