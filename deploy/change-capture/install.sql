-- Change capture for outboxd: a trigger on an ERP table that writes its changed rows into the outbox (docs/outbox.md).
--
-- Run this file once in the ERP's database; that changes no table. Then, for each table:
--
--   select outboxd_capture.install('public.sales_order',
--     type    => 'data',                                        -- which mapping file
--     key     => 'customer_no',                                 -- records of one key are sent in order; null: no order
--     watched => '{customer_no, net_amount, reference}',        -- an update that changes none of these writes nothing
--     payload => '{customerId, customer_no, amount, net_amount}',   -- name in the payload, column, …; null: all columns
--     condition => $$n.status = 'released'$$,                     -- n is the new row; null: every row
--     outbox  => 'public.outbox');
--   select outboxd_capture.remove('public.sales_order');
--
-- To install again with other settings replaces the triggers. remove.sql takes everything away.
-- Deleted rows are not captured, nor TRUNCATE; and nothing where session_replication_role is replica.
begin;

create schema if not exists outboxd_capture;

create or replace function outboxd_capture.columns(of text, names name[]) returns text immutable language sql
  return (select string_agg(format('%s.%I', of, name), ', ' order by at) from unnest(names) with ordinality each(name, at));

create or replace function outboxd_capture.install(
  erp_table regclass,
  type      text,
  watched   name[],
  key       name     default null,
  payload   text[]   default null,
  condition text     default null,
  outbox    regclass default 'outbox'::regclass
) returns void language plpgsql as $install$
declare
  row_name   text;
  primary_key name[];
  unknown    text;
  built      text := 'n.*';
  capture    text;
  chosen     text;
  in_order   text;
  changed    text;
  function_name text;
  outbox_name text;
begin
  select format('%I.%I', nspname, relname), left(nspname || '.' || relname, 63)
    into row_name, function_name
    from pg_class c join pg_namespace s on s.oid = c.relnamespace where c.oid = erp_table;
  select format('%I.%I', nspname, relname) into outbox_name
    from pg_class c join pg_namespace s on s.oid = c.relnamespace where c.oid = outbox;
  select array_agg(a.attname order by a.attnum) into primary_key
    from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
    where i.indrelid = erp_table and i.indisprimary;
  if primary_key is null then
    raise exception '% has no primary key: the old and the new row of an update could not be told to belong together', row_name;
  end if;
  if coalesce(cardinality(watched), 0) = 0 then
    raise exception 'watched is empty: name the columns whose change is to be sent';
  end if;
  if cardinality(payload) % 2 = 1 then
    raise exception 'payload must be pairs: name in the payload, column';
  end if;
  select string_agg(wanted::text, ', ') into unknown from (
      select unnest(watched) union select key where key is not null
      union select payload[i]::name from generate_series(2, coalesce(cardinality(payload), 0), 2) i
    ) named(wanted)
    where not exists (select from pg_attribute
      where attrelid = erp_table and attname = wanted and attnum > 0 and not attisdropped);
  if unknown is not null then
    raise exception '% has no column %', row_name, unknown;
  end if;

  if payload is not null then
    select string_agg(format('n.%I as %I', payload[i + 1], payload[i]), ', ') into built
      from generate_series(1, cardinality(payload), 2) i;
  end if;
  -- A statement that changes a million rows is one insert. to_jsonb keeps a numeric's digits, and a timestamptz's offset.
  capture := format('insert into %s (type, key, payload) select %L, %s, to_jsonb(built)', outbox_name, type,
    case when key is null then 'null' else format('n.%I::text', key) end);
  chosen := format(' cross join lateral (select %s) built where (%s)', built, coalesce(condition || E'\n', 'true'));
  in_order := format(' order by %s', outboxd_capture.columns('n', primary_key));
  -- A row whose primary key was changed has no old row: it counts as changed.
  changed := format('(o.%I is null or (%s) is distinct from (%s))', primary_key[1],
    outboxd_capture.columns('n', watched), outboxd_capture.columns('o', watched));

  perform outboxd_capture.remove(erp_table);
  execute format(
    $function$create function outboxd_capture.%I() returns trigger language plpgsql security definer
    set search_path = pg_catalog, pg_temp as $body$
    begin
      if tg_op = 'INSERT' then
        %s;
      else
        %s;
      end if;
      return null;
    end $body$$function$,
    function_name,
    capture || ' from new_rows n' || chosen || in_order,
    capture || format(' from new_rows n left join old_rows o on (%s) = (%s)',
      outboxd_capture.columns('n', primary_key), outboxd_capture.columns('o', primary_key))
      || chosen || ' and ' || changed || in_order);
  -- Transition tables go with one event each.
  execute format('create trigger outboxd_capture_insert after insert on %s referencing new table as new_rows
    for each statement execute function outboxd_capture.%I()', row_name, function_name);
  execute format('create trigger outboxd_capture_update after update on %s referencing old table as old_rows new table as new_rows
    for each statement execute function outboxd_capture.%I()', row_name, function_name);
end $install$;

create or replace function outboxd_capture.remove(erp_table regclass) returns void language plpgsql as $remove$
declare
  captured regprocedure;
begin
  select tgfoid into captured from pg_trigger where tgrelid = erp_table and tgname = 'outboxd_capture_insert';
  execute format('drop trigger if exists outboxd_capture_insert on %s', erp_table);
  execute format('drop trigger if exists outboxd_capture_update on %s', erp_table);
  if captured is not null then
    execute format('drop function %s', captured);
  end if;
end $remove$;

revoke all on function outboxd_capture.install, outboxd_capture.remove from public;

commit;
