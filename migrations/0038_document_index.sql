-- Up Migration

-- Finds the last record of a document. Hashed, because a text may be longer than an index entry. Beside the columns of 0037 and not with
-- them, so that reading a large table locks out writers only.
create index submission_document on outboxd.submission (hashtextextended(document, 0), seq) where document is not null;
create index pruned_submission_document on outboxd.pruned_submission (hashtextextended(document, 0), seq) where document is not null;
