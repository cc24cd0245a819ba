-- Up Migration

-- What the outbox's table refuses to be told, or a session of the ERP keeps locked, is put off by itself: the others go on.
alter table outboxd.submission
  add column report_put_off    integer,              -- the revision that is put off: a later one is told at once
  add column report_not_before timestamptz,          -- it is told again then
  add column report_failures   integer not null default 0;   -- in a row

-- Two indexes, so that many that are put off do not lie in the way of those that are not.
drop index outboxd.submission_report;
create index submission_report on outboxd.submission (seq)
  where report_due and report_put_off is distinct from revision;
create index submission_report_again on outboxd.submission (report_not_before)
  where report_due and report_put_off = revision;
