-- Up Migration

-- Requests made for records, by the minute, for the service's two targets (docs/reference/interface.md, section 8). Each instance writes
-- rows of its own, so that none waits for another; rows older than two days are deleted.
create table outboxd.request_count (
  minute      timestamptz not null,   -- when it began
  kind        text        not null check (kind in ('submit', 'status')),
  instance_id uuid        not null,
  requests    integer     not null,
  failed      integer     not null,   -- answered 500 and above, or with E003, or not at all
  answered    integer     not null,   -- answers and timeouts: all but connections that failed
  slow        integer     not null,   -- of those, the ones that took longer than 2 s
  primary key (minute, kind, instance_id),
  check (failed between 0 and requests and answered between 0 and requests and slow between 0 and answered)
) with (fillfactor = 50);
