-- Up Migration

-- Lists of one type: of a type that few records have, the fifty that ended last would be looked for among all the others. By its hash, as a
-- type is the ERP's text and may be longer than an index's entry.
create index submission_type on outboxd.submission (state, hashtextextended(type, 0), ended_at, seq) where ended_at is not null;
