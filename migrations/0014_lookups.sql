-- Up Migration

-- What a person looks a record up by, where that read every row: the idempotency key that the service logged, the record's key
-- (a hash, since an entry of an index ends at 2,704 bytes), and an id's last digits, for its first are those of all its time.
create index submission_idempotency_key on outboxd.submission (idempotency_key);
create index submission_key on outboxd.submission (hashtextextended(key, 0)) where key is not null;
create index submission_last_digits on outboxd.submission (right(id::text, 6));
