-- Up Migration

-- What operators did that is no step of one submission: who, when, why, and until when. Rows are only ever added; what was done to a
-- submission stands in its events.
create table outboxd.operator_act (
  id      bigint      generated always as identity primary key,
  at      timestamptz not null default clock_timestamp(),
  act     text        not null,   -- src/ledger/operator/operator.ts
  who     text        not null,
  account text,                   -- user@host that gave the command; null: written before it was kept
  reason  text,
  until   timestamptz,            -- of a pause: when it ends by itself
  detail  jsonb
);

create function outboxd.refuse_change_of_act() returns trigger language plpgsql as $$
begin
  raise exception 'the log of operators'' acts is append-only';
end $$;
create trigger append_only before update or delete on outboxd.operator_act
  for each row execute function outboxd.refuse_change_of_act();

-- A pause that stands now was said so only in its text.
insert into outboxd.operator_act (at, act, who, reason, until)
select since, 'pause', coalesce(substring(detail from '\((operator [^()]*)\)$'), 'operator'),
  regexp_replace(detail, ' \(operator [^()]*\)$', ''), until
from outboxd.pause where reason = 'operator';
