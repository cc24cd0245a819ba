-- Up Migration

-- What is known, or in doubt, of how a submission arrived at the service.
alter table outboxd.submission
  -- It ended failed or rejected, and yet the service may have the record: a replay could make it there twice.
  add column may_have_arrived boolean not null default false,
  -- The transaction id is an operator's word (resolve --arrived), not the service's.
  add column id_by_person boolean not null default false,
  -- The next poll is one of a transaction that is long past its time: such polls get a small share of the slots.
  add column polled_rarely boolean not null default false,
  add check (not may_have_arrived or state in ('failed', 'rejected', 'discarded')),
  add check (not id_by_person or transaction_id is not null);

-- Due polls, those of transactions that are long past their time apart.
drop index outboxd.submission_polled;
create index submission_polled on outboxd.submission (polled_rarely, poll_at) where job_id is not null;

-- Whose an id is: the service may give one twice. Ids have at most 255 characters, 500 where an operator gave them to an
-- earlier version, which a btree entry holds.
create index submission_transaction on outboxd.submission (transaction_id, resource) where transaction_id is not null;

-- What is known of the rows of before: an answer 500 leaves an attempt in doubt, and a transaction that ended without the
-- service's word (no age at which it was done) was accepted once and answered 404 later.
update outboxd.submission set may_have_arrived = true
where state in ('failed', 'rejected')
  and (in_doubt or server_errors > 0 or (state = 'failed' and transaction_id is not null and done_ms is null));

update outboxd.submission s set id_by_person = true
where s.state = 'accepted' and exists (
  select from outboxd.submission_event e
  where e.submission_id = s.id and e.cause = 'resolved: arrived as ' || s.transaction_id
);
