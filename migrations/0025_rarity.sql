-- Up Migration

-- How rare a key, a type or a code is. Of an index with a condition Postgres uses no statistics: it takes each of its values for one row in two
-- hundred, and to list the twenty records of a key among a million completed ones it read the whole index of that state, too (0.4 s).
create statistics outboxd.submission_key_rarity on (hashtextextended(key, 0)) from outboxd.submission;
create statistics outboxd.submission_type_rarity on (hashtextextended(type, 0)) from outboxd.submission;
create statistics outboxd.submission_code_rarity on (lower(error_code)) from outboxd.submission;
analyze outboxd.submission;
