-- Change capture for outboxd: triggers on an ERP table that write its changed rows into the outbox (docs/start/outbox.md).
--
-- Run this file once in the ERP's database; that changes no table. Then, for each table:
--
--   select outboxd_capture.install('public.sales_order',
--     type    => 'data',                                        -- which mapping file
--     key     => 'customer_no',                                 -- records of one key are sent in order; null: no order
--     watched => '{customer_no, net_amount, reference}',        -- an update that changes none of these writes nothing
--     payload => '{customerId, customer_no, amount, net_amount}',   -- name in the payload, column, …; null: all columns
--     condition => $$n.status = 'released'$$,                     -- n is the row; null: every row. A row that comes to
--     outbox  => 'public.outbox');                              -- meet it counts as changed
--   select outboxd_capture.remove('public.sales_order');
--
-- To install again with other settings replaces the triggers. remove.sql takes everything away.
-- Deleted rows are not captured, nor TRUNCATE; and nothing where session_replication_role is replica.
--
-- The ERP's own statement never fails by this. What could not be captured is noted in outboxd_capture.error, and
-- captured later by
--
--   select * from outboxd_capture.retry();                     -- the rows as they are by then
--   select outboxd_capture.dismiss('public.sales_order');      -- forgets its notes: they are none of ours
--
-- outboxd_capture.trouble, which everybody may read, says what is noted and what is not covered; the daemon reads it.
begin;

create schema if not exists outboxd_capture;
-- Those of earlier versions.
drop function if exists outboxd_capture.columns(text, name[]);
drop function if exists outboxd_capture.same_row(regclass);
drop function if exists outboxd_capture.trigger_function(text, text, text, text);
do $$
begin
  if to_regclass('outboxd_capture.installed') is not null then
    drop function if exists outboxd_capture.query(outboxd_capture.installed, text, boolean);
  end if;
end $$;

-- What `install` was told for each table.
create table if not exists outboxd_capture.installed (
  erp_table    regclass primary key,
  table_name   text not null,   -- as it was; what remains where the table is dropped
  type         text not null,
  watched      name[] not null,
  key          name,
  payload      text[],
  condition    text,
  outbox       regclass not null,
  by_row       boolean not null,
  installed_at timestamptz not null default now(),
  version      int not null default 1
);
alter table outboxd_capture.installed add column if not exists version int not null default 1; -- of its trigger function

-- Rows that could not be captured, noted in the ERP's own transaction. Only added to, so that no writer waits for another.
create table if not exists outboxd_capture.error (
  id        bigint generated always as identity primary key,
  erp_table regclass not null,
  operation text not null,
  row_key   jsonb,           -- its primary key; null: rows were changed, and it is not known which
  sqlstate  text not null,
  message   text not null,
  noted_at  timestamptz not null default clock_timestamp()
);
create index if not exists error_of_table on outboxd_capture.error (erp_table, id);
create index if not exists error_unknown on outboxd_capture.error (erp_table) where row_key is null;

-- The columns of a table's primary key, with the operator by which it is unique. A key that is no btree (without overlaps) has none.
create or replace function outboxd_capture.primary_key(of regclass, out names name[], out equals text[]) stable language sql
set search_path = pg_catalog, pg_temp as $$
  select array_agg(a.attname order by k.at),
    array_agg(coalesce(format('operator(%I.%s)', s.nspname, o.oprname), '') order by k.at)
  from pg_index i
  cross join unnest(i.indkey::int2[]) with ordinality k(attnum, at)
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
  join pg_opclass c on c.oid = i.indclass[k.at - 1]
  left join pg_amop m on m.amopfamily = c.opcfamily and m.amopmethod = 403 and m.amopstrategy = 3
    and m.amoplefttype = c.opcintype and m.amoprighttype = c.opcintype
  left join pg_operator o on o.oid = m.amopopr
  left join pg_namespace s on s.oid = o.oprnamespace
  where i.indrelid = $1 and i.indisprimary and k.at <= i.indnkeyatts
$$;

-- a.col, b.col … of one alias.
create or replace function outboxd_capture.columns_of(alias text, names name[]) returns text immutable language sql
set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('%s.%I', alias, name), ', ' order by at) from unnest(names) with ordinality each(name, at)
$$;

-- Two aliases are one row, at different times.
create or replace function outboxd_capture.same_row(of regclass, one text, other text) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select string_agg(case when equal = '' then format('row(%s.%I)::record operator(pg_catalog.*=) row(%s.%2$I)::record', one, name, other)
      else format('%s.%I %s %s.%2$I', one, name, equal, other) end, ' and ' order by at)
  from outboxd_capture.primary_key($1), unnest(names, equals) with ordinality each(name, equal, at)
$$;

-- What is sent of the row that `alias` names: key and payload. to_jsonb keeps a numeric's digits, and a timestamptz's offset.
create or replace function outboxd_capture.image(told outboxd_capture.installed, alias text) returns text immutable language sql
set search_path = pg_catalog, pg_temp as $$
  select format('select %s as key, to_jsonb(built.*) as payload from (select %s) built',
    case when told.key is null then 'null::text' else format('%s.%I::text', alias, told.key) end,
    case when told.payload is null then format('%s.*', alias) else (
      select string_agg(format('%s.%I as %I', alias, told.payload[i + 1], told.payload[i]), ', ' order by i)
      from generate_series(1, cardinality(told.payload), 2) i) end)
$$;

-- The condition, of the row that `alias` names; asked in a query of its own, in which the row is called n.
create or replace function outboxd_capture.condition_of(told outboxd_capture.installed, alias text) returns text immutable language sql
set search_path = pg_catalog, pg_temp as $$
  select case when told.condition is null then 'true' else format(E'(select (%s\n) from (select %s.*) n)', told.condition, alias) end
$$;

-- The query that makes outbox rows (type, key, payload) of the rows that `source` calls n and, where `has_old`, o.
--
-- With `read_again` each row is read as it stands by now, as c, and that is sent. It is needed where a trigger of the ERP has
-- changed rows again that are in `source`: what the inner statement did is captured before what the outer one did. A row
-- whose watched columns no longer are what this statement left in them, or which no longer meets the condition, is left
-- to the statement that changed it since; that one's capture has had it already. One that is gone, has another primary key
-- or is hidden by row-level security is sent as the statement left it.
create or replace function outboxd_capture.query(told outboxd_capture.installed, source text, has_old boolean, read_again boolean)
returns text stable language plpgsql set search_path = pg_catalog, pg_temp as $query$
declare
  primary_key name[] := (select names from outboxd_capture.primary_key(told.erp_table));
  compared name[] := told.watched || primary_key;
  image    text := outboxd_capture.image(told, 'n');
  chosen   text := outboxd_capture.condition_of(told, 'n');
begin
  if has_old then
    -- Rows are compared by their image (*<>): that works for every type, also json, and sees 1.50 where 1.5 was.
    -- A row whose primary key was changed has no old row: it counts as changed.
    chosen := chosen || format(' and (o.%I is null or row(%s)::record operator(pg_catalog.*<>) row(%s)::record or %s is not true)',
      primary_key[1], outboxd_capture.columns_of('n', compared), outboxd_capture.columns_of('o', compared),
      outboxd_capture.condition_of(told, 'o'));
  end if;
  if read_again then
    source := source || format(' left join lateral (select c.* from %s c where %s limit 1) c on true',
      outboxd_capture.quoted(told.erp_table), outboxd_capture.same_row(told.erp_table, 'c', 'n'));
    image := format('%s where c.%I is null union all %s where c.%2$I is not null',
      image, primary_key[1], outboxd_capture.image(told, 'c'));
    chosen := chosen || format(' and (c.%I is null or row(%s)::record operator(pg_catalog.*=) row(%s)::record and %s)',
      primary_key[1], outboxd_capture.columns_of('c', compared), outboxd_capture.columns_of('n', compared),
      outboxd_capture.condition_of(told, 'c'));
  end if;
  -- Cascades of foreign keys put a row into one transition table several times; read again it is the same each time.
  return format('select %s %L::text as type, image.key, image.payload from %s cross join lateral (%s) image where %s order by %s',
    case when read_again then format('distinct on (%s)', outboxd_capture.columns_of('n', primary_key)) else '' end,
    told.type, source, image, chosen, outboxd_capture.columns_of('n', primary_key));
end $query$;

create or replace function outboxd_capture.quoted(of regclass) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select format('%I.%I', nspname, relname) from pg_class c join pg_namespace s on s.oid = c.relnamespace where c.oid = $1
$$;

-- Refuses what cannot work, in words, and tries the rest on rows that are there; what it writes is rolled back.
create or replace function outboxd_capture.try_out(told outboxd_capture.installed) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $try$
declare
  row_name text := outboxd_capture.quoted(told.erp_table);
  outbox_name text := outboxd_capture.quoted(told.outbox);
  wrong text;
begin
  if (select relkind from pg_class where oid = told.erp_table) not in ('r', 'p') then
    raise exception '% is no table', row_name;
  end if;
  if (select names from outboxd_capture.primary_key(told.erp_table)) is null then
    raise exception '% has no primary key: the old and the new row of an update could not be told to belong together', row_name;
  end if;
  if coalesce(cardinality(told.watched), 0) = 0 then
    raise exception 'watched is empty: name the columns whose change is to be sent';
  end if;
  if cardinality(told.payload) % 2 = 1 then
    raise exception 'payload must be pairs: name in the payload, column';
  end if;
  select string_agg(wanted::text, ', ') into wrong from outboxd_capture.named(told) wanted
    where not exists (select from pg_attribute
      where attrelid = told.erp_table and attname = wanted and attnum > 0 and not attisdropped);
  if wrong is not null then
    raise exception '% has no column %', row_name, wrong;
  end if;
  select string_agg(attname::text, ', ' order by attnum) into wrong from pg_attribute
    where attrelid = told.erp_table and attgenerated = 'v' and not attisdropped
      and (told.payload is null or attname in (select outboxd_capture.named(told)));
  if wrong is not null then
    raise exception 'the column % of % is generated and stored nowhere (virtual): a trigger does not see it', wrong, row_name
      using hint = 'Name the columns that it is made of in payload and watched, or make it stored.';
  end if;
  begin
    execute format('select count(key), count(payload) from (%s) tried', outboxd_capture.query(told,
      format('(select %1$s from %2$s n limit 1000) n left join (select %1$s from %2$s n limit 1000) o on (%3$s)',
        outboxd_capture.visible_columns(told.erp_table), row_name, outboxd_capture.same_row(told.erp_table, 'n', 'o')), true, true));
    execute format('insert into %s (type, key, payload) %s', outbox_name, outboxd_capture.query(told,
      format('(select %s from %s n limit 1) n', outboxd_capture.visible_columns(told.erp_table), row_name), false, false));
    raise exception sqlstate 'OB001';
  exception
    when sqlstate 'OB001' then null; -- it works: taken back
    when others then
      raise exception 'capture of % was tried on its own rows and does not work: % (%)', row_name, sqlerrm, sqlstate
        using hint = 'Look at condition, payload and key; names in condition are found in pg_catalog alone, others need their schema.';
  end;
end $try$;

-- Every column that `install` was told.
create or replace function outboxd_capture.named(told outboxd_capture.installed) returns setof name immutable language sql
set search_path = pg_catalog, pg_temp as $$
  select unnest($1.watched) union select $1.key where $1.key is not null
  union select $1.payload[i]::name from generate_series(2, coalesce(cardinality($1.payload), 0), 2) i
$$;

-- The columns that a trigger sees: a condition must not name others.
create or replace function outboxd_capture.visible_columns(of regclass) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('n.%I', attname), ', ' order by attnum) from pg_attribute
  where attrelid = $1 and attnum > 0 and not attisdropped and attgenerated <> 'v'
$$;

-- A partition's rows come through its parent as well as by its own name. A statement's triggers are those of the table that
-- it names; a row's are those of the table that keeps it, and a partitioned parent gives them to every partition, also
-- to one that is attached later. Elsewhere the statement's triggers are better: a million rows are one insert.
create or replace function outboxd_capture.needs_row_triggers(of regclass) returns boolean stable language sql
set search_path = pg_catalog, pg_temp as $$
  select relkind = 'p' or exists (select from pg_inherits where inhrelid = $1) from pg_class where oid = $1
$$;

-- The table and, where they inherit from it as tables did before there were partitions, its children: each has its own triggers.
create or replace function outboxd_capture.family(of regclass) returns setof regclass stable language sql
set search_path = pg_catalog, pg_temp as $$
  with recursive family as (
    select $1::oid as id
    union select c.oid from family f join pg_inherits i on i.inhparent = f.id join pg_class c on c.oid = i.inhrelid
      where not c.relispartition and c.relkind = 'r' and c.oid not in (select erp_table from outboxd_capture.installed)
  )
  select id::regclass from family
$$;

create or replace function outboxd_capture.install(
  erp_table regclass,
  type      text,
  watched   name[],
  key       name     default null,
  payload   text[]   default null,
  condition text     default null,
  outbox    regclass default 'outbox'::regclass
) returns void language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $install$
declare
  by_row boolean := outboxd_capture.needs_row_triggers(erp_table);
  told outboxd_capture.installed := row(erp_table, outboxd_capture.quoted(erp_table), type, watched, key, payload, condition,
    outbox, by_row, now(), 2);
  function_name text;
  each regclass;
begin
  perform outboxd_capture.try_out(told);
  -- By the oid: two long names may begin alike, and a table that was dropped leaves its function behind.
  function_name := format('%I', format('capture_%s_%s', erp_table::oid, (select relname from pg_class where oid = erp_table))::name);
  execute outboxd_capture.trigger_function(function_name, told);

  perform outboxd_capture.drop_triggers(erp_table, case when by_row then '{outboxd_capture_row}'::name[]
    else '{outboxd_capture_insert, outboxd_capture_update}' end);
  for each in select outboxd_capture.family(erp_table) loop
    if by_row then
      execute format('create or replace trigger outboxd_capture_row after insert or update on %s
        for each row execute function outboxd_capture.%s()', outboxd_capture.quoted(each), function_name);
    else
      -- Transition tables go with one event each.
      execute format('create or replace trigger outboxd_capture_insert after insert on %s referencing new table as new_rows
        for each statement execute function outboxd_capture.%s()', outboxd_capture.quoted(each), function_name);
      execute format('create or replace trigger outboxd_capture_update after update on %s
        referencing old table as old_rows new table as new_rows
        for each statement execute function outboxd_capture.%s()', outboxd_capture.quoted(each), function_name);
    end if;
  end loop;
  -- A table of this name that was dropped has its successor.
  delete from outboxd_capture.installed i where i.erp_table = told.erp_table
    or (i.table_name = told.table_name and not exists (select from pg_class where oid = i.erp_table));
  insert into outboxd_capture.installed select told.*;
  perform outboxd_capture.drop_unused_functions();
end $install$;

-- The text of a table's trigger function. Its exception block is a subtransaction: it costs some microseconds, and the ERP's
-- statement goes through. A lock that somebody holds on the outbox is waited for a second, then the rows are noted.
--
-- Rows are read again only where they may have changed since the statement wrote them: a trigger of the ERP wrote to this table
-- meanwhile, which our trigger saw deeper down, or foreign keys' cascades changed a row twice. So an ERP without such
-- triggers pays nothing.
--
-- A session keeps plans that it made for a single row and an empty table, so: no seqscan where rows are read again, and an
-- update of many rows is planned anew. A join of 10,000 new rows with 10,000 old ones, row by row, takes 6 s instead of 0.07.
create or replace function outboxd_capture.trigger_function(function_name text, told outboxd_capture.installed)
returns text stable language plpgsql set search_path = pg_catalog, pg_temp as $text$
declare
  insert_into text := format('insert into %s (type, key, payload) ', outboxd_capture.quoted(told.outbox));
  inserted text := case when told.by_row then '(select new.*) n' else 'new_rows n' end;
  updated text := case when told.by_row then '(select new.*) n cross join (select old.*) o'
    else format('new_rows n left join old_rows o on (%s)', outboxd_capture.same_row(told.erp_table, 'n', 'o')) end;
  -- Of a single row nothing is counted: that would cost more than capturing it.
  count_rows text := case when told.by_row then '' else format('if tg_op = ''UPDATE'' then
        perform from new_rows offset 1 limit 1;
        if found then
          select sum(times) > 100, max(times) > 1 into many, again
            from (select count(*) as times from new_rows n group by %s) each;
        end if;
      end if;', outboxd_capture.columns_of('n', (select names from outboxd_capture.primary_key(told.erp_table)))) end;
  deepest text := format('outboxd_capture.deepest_%s', told.erp_table::oid);
begin
  return format($function$
    create or replace function outboxd_capture.%1$s() returns trigger language plpgsql security definer
    set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as %2$L$function$, function_name, format($body$
    declare
      seqscan text;
      deepest int := coalesce(nullif(current_setting(%6$L, true), ''), '0');
      many boolean;
      again boolean;
      why_state text;
      why text;
      key_names name[];
      noted bigint := 0;
    begin
      if pg_trigger_depth() > greatest(deepest, 1) then
        perform set_config(%6$L, pg_trigger_depth()::text, true);
      end if;
      %7$s
      again := again is true or deepest > pg_trigger_depth();
      if again then
        if to_regclass(%8$L) is distinct from %9$s then
          raise exception sqlstate '42P01' using message = %10$L;
        end if;
        seqscan := current_setting('enable_seqscan');
        perform set_config('enable_seqscan', 'off', true);
      end if;
      if many then
        execute case when again then %4$L else %2$L end;
      elsif tg_op = 'INSERT' and again then
        %3$s;
      elsif tg_op = 'INSERT' then
        %1$s;
      elsif again then
        %4$s;
      else
        %2$s;
      end if;
      if again then
        perform set_config('enable_seqscan', seqscan, true);
      end if;
      return null;
    exception when others then
      get stacked diagnostics why_state = returned_sqlstate, why = message_text;
      begin
        if pg_trigger_depth() > greatest(deepest, 1) then
          perform set_config(%6$L, pg_trigger_depth()::text, true);
        end if;
        key_names := outboxd_capture.key_names(tg_relid);
        if outboxd_capture.has_room() then
          insert into outboxd_capture.error (erp_table, operation, row_key, sqlstate, message)
            select outboxd_capture.root_of(tg_relid), tg_op, outboxd_capture.pick(image, key_names), why_state, left(why, 1000)
            from %5$s written(image) limit 10000;
          get diagnostics noted = row_count;
        end if;
        if noted in (0, 10000) then
          perform outboxd_capture.note_unknown(tg_relid, tg_op, why_state, why);
        end if;
      exception when others then
        perform outboxd_capture.note_unknown(tg_relid, tg_op, why_state, why);
      end;
      return null;
    end $body$,
    insert_into || outboxd_capture.query(told, inserted, false, false),
    insert_into || outboxd_capture.query(told, updated, true, false),
    insert_into || outboxd_capture.query(told, inserted, false, true),
    insert_into || outboxd_capture.query(told, updated, true, true),
    case when told.by_row then '(select to_jsonb(new))' else '(select to_jsonb(each.*) from new_rows each)' end,
    deepest, count_rows, told.table_name, told.erp_table::oid, told.table_name || ' was renamed: install it again'));
end $text$;

-- The table that was installed, of which this one is a partition or a child.
create or replace function outboxd_capture.root_of(of oid) returns regclass stable language sql
set search_path = pg_catalog, pg_temp as $$
  with recursive family as (
    select $1 as id, 0 as far union select inhparent, far + 1 from pg_inherits join family on id = inhrelid
  )
  select coalesce((select erp_table from family join outboxd_capture.installed on erp_table = id order by far limit 1), $1::regclass)
$$;

create or replace function outboxd_capture.key_names(of oid) returns name[] stable language sql
set search_path = pg_catalog, pg_temp as $$
  select names from outboxd_capture.primary_key(outboxd_capture.root_of($1))
$$;

create or replace function outboxd_capture.pick(image jsonb, names name[]) returns jsonb immutable language sql
set search_path = pg_catalog, pg_temp as $$
  select jsonb_object_agg(name, image -> name::text) from unnest(names) name
$$;

-- Notes have a bound: ids tell how many there are at most, without counting.
create or replace function outboxd_capture.has_room() returns boolean stable language sql
set search_path = pg_catalog, pg_temp as $$
  select coalesce((select id from outboxd_capture.error order by id desc limit 1)
    - (select id from outboxd_capture.error order by id limit 1) < 100000, true)
$$;

-- Notes, once for each table, that rows were changed and it is not known which; the last resort is the server's log.
create or replace function outboxd_capture.note_unknown(of oid, operation text, why_state text, why text) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $note$
begin
  insert into outboxd_capture.error (erp_table, operation, sqlstate, message)
    select root, operation, why_state, left(why, 1000) from outboxd_capture.root_of(of) root
    where not exists (select from outboxd_capture.error e where e.erp_table = root and e.row_key is null);
exception when others then
  raise warning 'outboxd_capture: a change of % was not captured (%) and could not be noted (%)', of::regclass, why_state, sqlstate;
end $note$;

-- Captures noted rows as they are now, each by itself; one that somebody is changing at the moment waits for the next call.
-- It locks the row: what is captured last is what was written last.
create or replace function outboxd_capture.retry(at_most int default 1000)
returns table (erp_table text, captured int, gone int, busy int, failed int, reason text) language plpgsql
set search_path = pg_catalog, pg_temp set row_security = off as $retry$
declare
  told outboxd_capture.installed;
  noted record;
  row_name text;
  this_row text;
  is_there boolean;
  is_mine boolean;
begin
  for told in select * from outboxd_capture.installed order by table_name loop
    row_name := outboxd_capture.quoted(told.erp_table);
    captured := 0; gone := 0; busy := 0; failed := 0; reason := null; erp_table := coalesce(row_name, told.table_name);
    for noted in
      select row_key, array_agg(id) as ids from (select id, row_key from outboxd_capture.error e
        where e.erp_table = told.erp_table and row_key is not null order by id limit at_most) first
      group by row_key order by min(id)
    loop
      begin
        if row_name is null then
          raise exception 'the table was dropped';
        end if;
        if not noted.row_key ?& (select names::text[] from outboxd_capture.primary_key(told.erp_table)) then
          raise exception 'the primary key has other columns by now';
        end if;
        this_row := format('%s n where exists (select from jsonb_populate_record(null::%1$s, %L) o where %s)',
          row_name, noted.row_key, outboxd_capture.same_row(told.erp_table, 'n', 'o'));
        execute format('select exists (select from %s)', this_row) into is_there;
        execute format('select true from %s for share of n skip locked', this_row) into is_mine;
        if is_there and is_mine is null then
          busy := busy + 1;
          continue;
        end if;
        execute format('insert into %s (type, key, payload) %s', outboxd_capture.quoted(told.outbox),
          outboxd_capture.query(told, format('(select n.* from %s) n', this_row), false, false));
        delete from outboxd_capture.error where id = any (noted.ids);
        if is_there then captured := captured + 1; else gone := gone + 1; end if;
      exception when others then
        failed := failed + 1;
        reason := sqlerrm;
      end;
    end loop;
    if captured + gone + busy + failed > 0 then
      return next;
    end if;
  end loop;
end $retry$;

create or replace function outboxd_capture.dismiss(of regclass) returns bigint language sql
set search_path = pg_catalog, pg_temp as $$
  with gone as (delete from outboxd_capture.error where erp_table = $1 returning 1) select count(*) from gone
$$;

create or replace function outboxd_capture.drop_triggers(of regclass, but name[] default '{}') returns void language plpgsql
set search_path = pg_catalog, pg_temp as $drop$
declare
  each record;
begin
  for each in
    select tgname, outboxd_capture.quoted(tgrelid) as on_table from pg_trigger
    where tgrelid in (select outboxd_capture.family(of)) and tgparentid = 0 and tgname <> all (but)
      and tgname in ('outboxd_capture_insert', 'outboxd_capture_update', 'outboxd_capture_row')
  loop
    execute format('drop trigger %I on %s', each.tgname, each.on_table);
  end loop;
end $drop$;

create or replace function outboxd_capture.drop_unused_functions() returns void language plpgsql
set search_path = pg_catalog, pg_temp as $unused$
declare
  unused regprocedure;
begin
  for unused in
    select p.oid from pg_proc p
    where p.pronamespace = 'outboxd_capture'::regnamespace and p.prorettype = 'trigger'::regtype
      and pg_has_role(p.proowner, 'usage') and not exists (select from pg_trigger where tgfoid = p.oid)
  loop
    execute format('drop function %s', unused);
  end loop;
end $unused$;

create or replace function outboxd_capture.remove(erp_table regclass) returns void language plpgsql
set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $remove$
begin
  perform outboxd_capture.drop_triggers(erp_table);
  delete from outboxd_capture.installed i where i.erp_table = remove.erp_table;
  delete from outboxd_capture.error e where e.erp_table = remove.erp_table;
  perform outboxd_capture.drop_unused_functions();
end $remove$;

-- What is not captured, a line for each table and reason, without the ERP's data: everybody may read it.
create or replace view outboxd_capture.trouble as
  with recursive relation as (
    select i.erp_table::oid as root, i.erp_table::oid as id from outboxd_capture.installed i
    union select r.root, c.oid from relation r join pg_inherits h on h.inhparent = r.id join pg_class c on c.oid = h.inhrelid
      where c.relkind in ('r', 'p') and c.oid not in (select erp_table from outboxd_capture.installed)
  ),
  uncovered as (
    select i.table_name, case
        when c.oid is null then format('it was dropped; if it is there again, install it again, else remove(%L)', i.erp_table::oid)
        when not i.by_row and exists (select from pg_inherits where inhrelid = c.oid)
          then 'it has become a partition or a child of another table: install it again'
        when i.version < 2 and r.id = i.erp_table then 'it was installed by an earlier version: install it again'
        when r.id <> i.erp_table then format('rows written to %s: install it again', r.id::regclass)
        else 'its triggers are gone or switched off: install it again'
      end as reason
    from outboxd_capture.installed i left join pg_class c on c.oid = i.erp_table join relation r on r.root = i.erp_table
    where c.oid is null or (i.version < 2 and r.id = i.erp_table) or (not i.by_row and exists (select from pg_inherits where inhrelid = c.oid))
      or (select count(*) from pg_trigger t join pg_proc p on p.oid = t.tgfoid
          where t.tgrelid = r.id and p.pronamespace = 'outboxd_capture'::regnamespace and t.tgenabled in ('O', 'A')
        ) < case when i.by_row then 1 else 2 end
  )
  select coalesce(i.table_name, e.erp_table::text) as table_name, count(*) as notes,
    count(*) filter (where row_key is null) > 0 as has_unknown, min(noted_at) as since,
    -- The messages of these classes name columns, tables and locks; others quote values.
    format('%s%s', max(sqlstate), ': ' || max(message) filter (where sqlstate ~ '^(0A|3F|40|42|53|54|55)')) as reason
  from outboxd_capture.error e left join outboxd_capture.installed i using (erp_table)
  group by 1
  union all
  select table_name, 0, false, null, reason from uncovered
  union all
  select distinct t.tgrelid::regclass::text, 0, false, null::timestamptz, 'it was installed by an earlier version: install it again'
  from pg_trigger t join pg_proc p on p.oid = t.tgfoid
  where p.pronamespace = 'outboxd_capture'::regnamespace and t.tgrelid not in (select id from relation);

revoke all on all functions in schema outboxd_capture from public;
grant usage on schema outboxd_capture to public;
grant select on outboxd_capture.trouble to public;

commit;
