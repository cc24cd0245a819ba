-- Up Migration

-- When to look whether the row of a pruned submission is still there: its id need not be known any more where it is gone, and was at
-- the look before: a table may be empty for a moment while it is loaded anew.
alter table outboxd.pruned_submission
  add column look_at  timestamptz not null default clock_timestamp() + interval '366 days',
  add column was_gone boolean     not null default false;
create index pruned_submission_look on outboxd.pruned_submission (look_at);

-- Lists: of each state those that ended first, or last; and by code, which few records have.
create index submission_state on outboxd.submission (state, ended_at, seq) where ended_at is not null;
create index submission_code on outboxd.submission (lower(error_code)) where error_code is not null;
