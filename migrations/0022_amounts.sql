-- Up Migration

-- The amounts of the request that a step made, as they are sent: by the fields' names, each digit as text. They stay when the request
-- itself is emptied. Null: the step made none, or was written before they were kept.
alter table outboxd.submission_event add column amounts jsonb;

-- What persons did, among all the steps that the daemons wrote.
create index submission_event_person on outboxd.submission_event (id) where who like 'operator%';
