-- Up Migration

-- The logs' chain (docs/run/retention.md, "The chain"): blocks of entries in the order of their ids, each with its predecessor's hash. What
-- was chained and then went with its submission stays in it by its digest.
create table outboxd.chain_block (
  number         bigint      primary key,
  made_at        timestamptz not null default clock_timestamp(),
  last_event     bigint      not null,   -- events up to it are in this block, or in one before
  last_act       bigint      not null,
  events         integer     not null,
  acts           integer     not null,
  event_ids      bigint[],               -- null, as the next two: every one of its events is gone
  submission_ids uuid[],
  leaves         bytea,                  -- of 32 bytes: the digests of its events, then of its acts
  act_ids        bigint[]    not null,
  digest         bytea       not null,   -- sha256 of the leaves
  hash           bytea       not null,   -- sha256 of the hash before, the number and the digest
  look_at        timestamptz default clock_timestamp() + interval '30 days'   -- when to look whether its events are gone
);
create index chain_block_look on outboxd.chain_block (look_at) where look_at is not null;

create function outboxd.refuse_change_of_chain() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    old.look_at := new.look_at;
    if new.event_ids is null and new.submission_ids is null and new.leaves is null and new.acts = 0
      and not exists (select from outboxd.submission_event where id = any(old.event_ids)) then
      old.event_ids := null;
      old.submission_ids := null;
      old.leaves := null;
    end if;
    if new is not distinct from old then
      return new;
    end if;
  end if;
  raise exception 'the chain is append-only';
end $$;
create trigger append_only before update or delete on outboxd.chain_block
  for each row execute function outboxd.refuse_change_of_chain();

-- What stood in an event and is gone, as the chain knows it: what a replay had noted of contents, and the rest. Null: it stands there.
alter table outboxd.submission_event
  add column contents_digest bytea,
  add column detail_digest   bytea;

create function outboxd.digest_of(a text, b text) returns bytea language sql immutable
  return sha256(convert_to(octet_length(coalesce(a, ''))::text || ':' || coalesce(a, '') || coalesce(b, ''), 'UTF8'));
-- What stays of a cause that is erased: what a person did, without why; a daemon's may have the service's words.
create function outboxd.kept_cause(who text, cause text) returns text language sql immutable
  return case when who like 'operator%' then split_part(cause, ':', 1) else 'erased' end;
create function outboxd.contents_digest(detail jsonb) returns bytea language sql immutable
  return outboxd.digest_of(detail #>> '{former,body}', detail #>> '{former,payload}');
create function outboxd.detail_digest(cause text, detail jsonb) returns bytea language sql immutable
  return outboxd.digest_of(cause, outboxd.without_contents(detail)::text);

-- A person's data is erased on demand: of what has ended, and in one step with its events.
alter table outboxd.submission
  add column erased_at timestamptz,
  add check (erased_at is null or (emptied_at is not null and num_nonnulls(key, payload, body, result, error) = 0));

create or replace function outboxd.refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and not exists (select from outboxd.submission where id = old.submission_id) then
    if old.id > coalesce((select last_event from outboxd.chain_block order by number desc limit 1), 0) then
      raise exception 'event % is not deleted: it is not in the chain yet', old.id;
    end if;
    return old;
  end if;
  if tg_op = 'UPDATE' and exists (select from outboxd.submission where id = old.submission_id and erased_at is not null) then
    -- Erased.
    new.contents_digest := coalesce(old.contents_digest, outboxd.contents_digest(old.detail));
    new.detail_digest := coalesce(old.detail_digest, outboxd.detail_digest(old.cause, old.detail));
    old.contents_digest := new.contents_digest;
    old.detail_digest := new.detail_digest;
    old.cause := outboxd.kept_cause(old.who, old.cause);
    old.detail := null;
    if new is not distinct from old then
      return new;
    end if;
  elsif tg_op = 'UPDATE' then
    -- Emptied: what a replay has noted of contents goes.
    new.contents_digest := coalesce(old.contents_digest, outboxd.contents_digest(old.detail));
    old.contents_digest := new.contents_digest;
    old.detail := outboxd.without_contents(old.detail);
    if new is not distinct from old
      and exists (select from outboxd.submission where id = old.submission_id and emptied_at is not null) then
      return new;
    end if;
  end if;
  raise exception 'the event log is append-only';
end $$;
