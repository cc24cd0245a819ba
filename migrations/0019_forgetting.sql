-- Up Migration

-- When to look whether the row of a pruned submission is still there: its id need not be known any more where it is gone, and was at
-- the look before: a table may be empty for a moment while it is loaded anew.
alter table outboxd.pruned_submission
  add column look_at  timestamptz not null default clock_timestamp() + interval '366 days',
  add column was_gone boolean     not null default false;
create index pruned_submission_look on outboxd.pruned_submission (look_at);

-- Lists: of each state those that ended first, or last; and by code, which few records have. The index of all that ended goes: a list of a
-- state of which there are few would be read by it, through all the others. What it served beside was processing times.
drop index outboxd.submission_ended;
create index submission_done on outboxd.submission (ended_at) where ended_at is not null and done_ms is not null;
create index submission_state on outboxd.submission (state, ended_at, seq) where ended_at is not null;
create index submission_under_way on outboxd.submission (state) where ended_at is null;
create index submission_code on outboxd.submission (lower(error_code)) where error_code is not null;
