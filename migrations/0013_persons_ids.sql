-- Up Migration

-- Before 0007 nobody noted that a transaction's id was an operator's word. What the service said of it may be another
-- record's: this one may have arrived all the same, and what it ended as can be corrected.
update outboxd.submission s set id_by_person = true, may_have_arrived = s.may_have_arrived or s.state = 'failed'
where s.state in ('failed', 'completed') and exists (
  select from outboxd.submission_event e
  where e.submission_id = s.id and e.cause = 'resolved: arrived as ' || s.transaction_id
);
