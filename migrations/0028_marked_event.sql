-- Up Migration

-- The last event as a daemon found the history to be right. It is there for as long as nobody puts older rows back into the tables that stand;
-- pruning forgets it with its record.
alter table outboxd.history add column marked_event bigint;
