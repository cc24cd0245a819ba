-- Up Migration

-- Where the outbox's table lay when the ledger was last found right: cluster, timeline, database and table. If the ledger goes back in
-- time and the outbox still lies there, rows that wait were not sent (docs/run/restore.md, "Backup and restore").
alter table outboxd.outbox add column place text;
