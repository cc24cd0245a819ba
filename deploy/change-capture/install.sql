-- Change capture for outboxd: triggers on an ERP table that write its changed rows into the outbox (docs/outbox.md).
--
-- Run this file once in the ERP's database, as a role of its own that is not a superuser; that changes no table. For a superuser it
-- prints how to make that role. Then, as that role, for each table:
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
--
-- The trigger functions run with the rights of the role that installed them. So that no code of another role does: only that role may
-- execute them; each column becomes a type of Postgres's own before anything else looks at it, by the output function of its type and
-- never by a cast or an operator, which the type's owner may have written; and a table is read, or an outbox written to, only if its
-- owner is a member of the installing role, because policies, triggers and index expressions are code, too.

-- Repairs what version 0.2 left, and commits that: there, PUBLIC could execute the trigger functions. If a role named outboxd_capture
-- exists, what the schema's owner has in it becomes that role's own: a superuser's, or one's own.
begin;
-- Names, operators too, are Postgres's own here: in `public` another role may have made some that fit better.
set local search_path = pg_catalog, pg_temp;
set local lock_timeout = '5s';
do $$
declare
  each record;
  former oid := (select nspowner from pg_namespace join pg_roles r on r.oid = nspowner
    where nspname = 'outboxd_capture' and (rolsuper or rolname = current_user) and pg_has_role(nspowner, 'member'));
  hand_over boolean := current_user <> 'outboxd_capture'
    and exists (select from pg_roles where rolname = 'outboxd_capture' and pg_has_role(oid, 'member'));
begin
  if former is not null and hand_over then
    alter schema outboxd_capture owner to outboxd_capture;
  end if;
  for each in
    select case relkind when 'v' then 'view' else 'table' end as kind, oid::regclass::text as name from pg_class
      where relnamespace = to_regnamespace('outboxd_capture') and relkind in ('r', 'v') and relowner = former
    union all
    select 'function', oid::regprocedure::text from pg_proc where pronamespace = to_regnamespace('outboxd_capture') and proowner = former
  loop
    if each.kind = 'function' then
      execute format('revoke all on function %s from public', each.name);
    end if;
    if hand_over then
      execute format('alter %s %s owner to outboxd_capture', each.kind, each.name);
    end if;
  end loop;
end $$;
commit;

begin;
set local search_path = pg_catalog, pg_temp;
set local lock_timeout = '5s';
do $$
declare
  owner name := (select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'outboxd_capture');
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    raise exception 'A superuser must not install change capture: its trigger functions run with the rights of the role that installs it.'
      using hint = E'Run these statements, and this file again in the same session:\n'
        '  create role outboxd_capture;                         -- unless it exists\n'
        '  create schema if not exists outboxd_capture authorization outboxd_capture;\n'
        '  set role outboxd_capture;';
  elsif owner <> current_user then
    raise exception 'The schema outboxd_capture belongs to %: run this file as that role, or as a superuser.', owner;
  elsif owner is null then
    create schema outboxd_capture;
  end if;
end $$;
-- Before all else, so that the ERP's notes do not wait while this does.
do $$
begin
  drop view if exists outboxd_capture.trouble;
exception when lock_not_available then
  raise exception 'Another session uses the view outboxd_capture.trouble: nothing was changed.' using hint = 'End that session (pg_locks names it), and run this file again.';
end $$;
-- Those of 0.2 that would be in the way.
drop function if exists outboxd_capture.same_row(regclass, text, text);
drop function if exists outboxd_capture.primary_key(regclass);

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
  version      int not null default 1,
  columns      name[],         -- those that the trigger reads
  outbox_name  text            -- as it was
);
do $$
begin
  if not exists (select from pg_attribute where attrelid = 'outboxd_capture.installed'::regclass and attname = 'outbox_name') then
    alter table outboxd_capture.installed add column if not exists version int not null default 1, -- of its trigger function
      add column if not exists columns name[], add column if not exists outbox_name text;
  end if;
end $$;

-- Rows that could not be captured, noted in the ERP's own transaction. Only added to, so that no writer waits for another.
create table if not exists outboxd_capture.error (
  id        bigint generated always as identity primary key,
  erp_table regclass not null,
  operation text not null,
  row_key   jsonb,           -- its primary key; null: rows were changed, and it is not known which
  sqlstate  text not null,
  message   text not null,
  noted_at  timestamptz not null default clock_timestamp(),
  xact      xid8 default pg_current_xact_id()
);
do $$
begin
  if not exists (select from pg_attribute where attrelid = 'outboxd_capture.error'::regclass and attname = 'xact') then
    alter table outboxd_capture.error add column xact xid8;
    alter table outboxd_capture.error alter xact set default pg_current_xact_id();
  end if;
  if to_regclass('outboxd_capture.error_unknown') is null then
    create index if not exists error_of_table on outboxd_capture.error (erp_table, id);
    create index error_unknown on outboxd_capture.error (erp_table) where row_key is null;
  end if;
end $$;

create or replace function outboxd_capture.primary_key(of regclass, out names name[]) stable language sql
set search_path = pg_catalog, pg_temp as $$
  select array_agg(a.attname order by k.at) from pg_index i
  cross join unnest(i.indkey::int2[]) with ordinality k(attnum, at)
  join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
  where i.indrelid = $1 and i.indisprimary and k.at <= i.indnkeyatts
$$;

-- A domain's base.
create or replace function outboxd_capture.base_type(of oid) returns oid stable language sql set search_path = pg_catalog, pg_temp as $$
  with recursive base as (
    select oid, typtype, typbasetype from pg_type where oid = $1
    union all select t.oid, t.typtype, t.typbasetype from base join pg_type t on t.oid = base.typbasetype where base.typtype = 'd'
  )
  select oid from base where typtype <> 'd'
$$;

-- The type of Postgres's own (oid below 16384, as to_jsonb has it) that stands for a type: a domain's base; text for any other type.
create or replace function outboxd_capture.plain_type(of oid) returns oid stable language sql set search_path = pg_catalog, pg_temp as $$
  select case when t.oid < 16384 then t.oid
    when t.typcategory = 'A' and t.typdelim = ',' and outboxd_capture.base_type(t.typelem) < 16384
      then (select typarray from pg_type e where e.oid = outboxd_capture.base_type(t.typelem))
    when t.typcategory = 'A' and t.typdelim = ',' then 'text[]'::regtype
    else 'text'::regtype end::oid
  from pg_type t where t.oid = outboxd_capture.base_type($1)
$$;

-- Its second argument, which must have the type of the first: no cast is looked for, so a column whose type was changed is an error.
-- Without a search path of its own it is inlined, and costs nothing.
create or replace function outboxd_capture.exactly(of_type anyelement, value anyelement) returns anyelement immutable language sql
as 'select $2';

-- Columns of the row that `alias` names, as types of Postgres's own. `format` uses output functions only.
create or replace function outboxd_capture.plain(of oid, alias text, columns name[]) returns table (name name, value text)
stable language sql set search_path = pg_catalog, pg_temp as $$
  select a.attname, format(case when a.atttypid = plain then 'outboxd_capture.exactly(null::%2$s, %1$s)'
      else '(case num_nulls(%1$s) when 0 then format(''%%s'', %1$s) end)::%2$s' end,
    format('%s.%I', alias, a.attname), format_type(plain, -1))
  from pg_attribute a, outboxd_capture.plain_type(a.atttypid) plain
  where a.attrelid = $1 and a.attname = any (columns) and a.attnum > 0 and not a.attisdropped
  order by a.attnum
$$;

create or replace function outboxd_capture.plain_row(of oid, alias text, columns name[]) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('%s as %I', value, name), ', ') from outboxd_capture.plain(of, alias, columns)
$$;

-- a.col, b.col … of one alias.
create or replace function outboxd_capture.columns_of(alias text, names name[]) returns text immutable language sql
set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('%s.%I', alias, name), ', ' order by at) from unnest(names) with ordinality each(name, at)
$$;

-- Two aliases are one row, at different times. Of the table itself, which has the index, `one` has the columns as they are there.
create or replace function outboxd_capture.same_row(of regclass, one text, other text, indexed boolean default false)
returns text stable language sql set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('%s operator(pg_catalog.=) %s.%I',
      case when indexed and outboxd_capture.base_type(a.atttypid) >= 16384 then value else format('%s.%I', one, name) end, other, name), ' and ')
  from outboxd_capture.plain($1, one, outboxd_capture.primary_key($1))
  join pg_attribute a on a.attrelid = $1 and a.attname = name
$$;

-- What is sent of the plain row that `alias` names: key and payload. to_jsonb keeps a numeric's digits, and a timestamptz's offset.
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
  primary_key name[] := outboxd_capture.primary_key(told.erp_table);
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
    source := source || format(' left join lateral (select %s from %s c where %s limit 1) c on true',
      outboxd_capture.plain_row(told.erp_table, 'c', told.columns), outboxd_capture.quoted(told.erp_table),
      outboxd_capture.same_row(told.erp_table, 'c', 'n', indexed => true));
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
  one text;
  expected bigint;
  written bigint;
begin
  if (select relkind from pg_class where oid = told.erp_table) not in ('r', 'p') then
    raise exception '% is no table', row_name;
  end if;
  if outboxd_capture.primary_key(told.erp_table) is null then
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
  if exists (select from pg_trigger where tgrelid in (select outboxd_capture.tree(told.outbox)) and tgdeferrable) then
    raise exception 'a constraint of % is deferrable: it could fail at the COMMIT of the ERP, where nothing can be noted any more', outbox_name;
  end if;
  if exists (select from pg_rewrite join pg_class c on c.oid = ev_class where ev_class = told.outbox and ev_type = '3' and relkind <> 'v') then
    raise exception '% has a rule, which may keep rows out: drop it', outbox_name;
  end if;
  begin
    execute format('select count(key), count(payload) from (%s) tried', outboxd_capture.query(told,
      format('(select %1$s from %2$s n limit 1000) n left join (select %1$s from %2$s n limit 1000) o on (%3$s)',
        outboxd_capture.plain_row(told.erp_table, 'n', told.columns), row_name, outboxd_capture.same_row(told.erp_table, 'n', 'o')), true, true));
    one := outboxd_capture.query(told,
      format('(select %s from %s n limit 1) n', outboxd_capture.plain_row(told.erp_table, 'n', told.columns), row_name), false, false);
    execute format('select count(*) from (%s) one', one) into expected;
    execute format('insert into %s (type, key, payload) %s', outbox_name, one);
    get diagnostics written = row_count;
    if written < expected then
      raise exception '% keeps rows out, by a trigger perhaps', outbox_name;
    end if;
    raise exception sqlstate 'OB001';
  exception
    when sqlstate 'OB001' then null; -- it works: taken back
    when others or assert_failure then
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

-- The columns that the trigger reads: of those that a condition may name too many, rather than too few.
create or replace function outboxd_capture.columns_read(told outboxd_capture.installed) returns name[] stable language sql
set search_path = pg_catalog, pg_temp as $$
  select array_agg(attname order by attnum) from pg_attribute
  where attrelid = $1.erp_table and attnum > 0 and not attisdropped and attgenerated <> 'v'
    and ($1.payload is null or attname = any (outboxd_capture.primary_key($1.erp_table))
      or attname in (select outboxd_capture.named($1)) or strpos(lower($1.condition), lower(attname)) > 0)
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

-- A table with its partitions and children.
create or replace function outboxd_capture.tree(of oid) returns setof oid stable language sql
set search_path = pg_catalog, pg_temp as $$
  with recursive tree as (select $1 as id union select inhrelid from tree join pg_inherits on inhparent = id) select id from tree
$$;

-- Those whose code runs with the rights of `role`, and who are not members of it: owners of what it reads and of what it inserts into,
-- and of functions and types that the outbox's triggers, defaults, constraints, indexes, policies and rules use.
create or replace function outboxd_capture.strange_owners(role name, erp_table oid, outbox oid default null) returns setof name
stable language sql set search_path = pg_catalog, pg_temp as $$
  with recursive used(class, id) as (
    select 'pg_class'::regclass::oid, tree from outboxd_capture.tree(outbox) tree
    union select next.* from used cross join lateral (
      select refclassid, refobjid from pg_depend where classid = class and objid = id and refobjid >= 16384
        and refclassid in ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass)
      union all select classid, objid from pg_depend where refclassid = class and refobjid = id and deptype in ('a', 'i')) next -- its parts
  )
  select distinct pg_get_userbyid(owner) from (
    select relowner from pg_class where oid in (select outboxd_capture.tree(erp_table) union select outboxd_capture.tree(outbox))
    union select coalesce(proowner, typowner, oprowner, opcowner) from used
      left join pg_proc p on class = 'pg_proc'::regclass and p.oid = id left join pg_type t on class = 'pg_type'::regclass and t.oid = id
      left join pg_operator o on class = 'pg_operator'::regclass and o.oid = id left join pg_opclass c on class = 'pg_opclass'::regclass and c.oid = id
  ) each(owner)
  where not coalesce((select pg_has_role(owner, oid, 'member') from pg_roles where rolname = role), (select rolsuper from pg_roles where oid = owner))
$$;

-- Refuses a role that may do more than capture needs, or less, and prints the statements that make the right one.
create or replace function outboxd_capture.refuse_role(erp_table regclass, outbox regclass) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $refuse$
declare
  me pg_roles;
  role text := current_user;
  wrong text;
  grants text;
begin
  select * into me from pg_roles where rolname = current_user;
  select string_agg(why, ', ') into wrong from (
    select why from (values (me.rolsuper, 'is a superuser'), (me.rolcreaterole, 'may create roles'), (me.rolcreatedb, 'may create databases'),
      (me.rolreplication, 'may replicate'), (me.rolbypassrls, 'bypasses row-level security')) each(so, why)
    where so and (not me.rolsuper or why like '%superuser')
    union all
    select format('is a member of %I', rolname) from pg_auth_members m join pg_roles r on r.oid = m.roleid where m.member = me.oid
    union all
    select 'owns the database' from pg_database where datname = current_database() and datdba = me.oid and not me.rolsuper
    union all
    (select format('owns %s', c.oid::regclass) from pg_class c
      where relowner = me.oid and not me.rolsuper and relkind in ('r', 'p', 'v', 'm', 'f') and relpersistence <> 't'
        and relnamespace <> 'outboxd_capture'::regnamespace and c.oid not in (
          select outboxd_capture.tree(erp_table) union select outboxd_capture.tree(outbox)
          union select outboxd_capture.tree(unnest(array[i.erp_table, i.outbox])) from outboxd_capture.installed i)
      limit 1)
  ) reasons;
  if wrong is not null then
    role := 'outboxd_capture';
    wrong := format('%I %s: the role that installs change capture must have few rights, because its trigger functions run with them.', current_user, wrong);
  end if;
  with needed as (
    select 1 as n, format('grant %I to %I;', role, owner) as needed
    from outboxd_capture.strange_owners(role, erp_table, outbox) owner
    union select 2, format('grant usage on schema %I to %I;', s.nspname, role) from pg_class c join pg_namespace s on s.oid = c.relnamespace
      where c.oid in (erp_table, outbox) and not has_schema_privilege(case when wrong is null then role else 'public' end, s.oid, 'usage')
    union select 3, format('grant select, trigger%s on %s to %I;',
        (select format(', update (%s)', string_agg(quote_ident(name), ', ')) from unnest(outboxd_capture.primary_key(erp_table)) name having count(*) > 0),
        outboxd_capture.quoted(id), role)
      from outboxd_capture.tree(erp_table) id
      where wrong is not null or not (has_table_privilege(id, 'select') and has_table_privilege(id, 'trigger') and has_any_column_privilege(id, 'update'))
    union select 4, format('grant insert on %s to %I;', outboxd_capture.quoted(outbox), role)
      where wrong is not null or not has_any_column_privilege(outbox, 'insert')
    union select 0, format('create role %I;                         -- unless it exists', role) where wrong is not null
    union select 5, format('set role %I;', role) where wrong is not null
  )
  select string_agg('  ' || needed, E'\n' order by n, needed) into grants from needed;
  if grants is not null then
    raise exception '%', coalesce(wrong, format('%I lacks rights that change capture of %s needs.', role, erp_table))
      using errcode = '42501', hint = E'Run these statements, then install again:\n' || grants;
  end if;
end $refuse$;

create or replace function outboxd_capture.install(
  erp_table regclass,
  type      text,
  watched   name[],
  key       name     default null,
  payload   text[]   default null,
  condition text     default null,
  outbox    regclass default 'outbox'::text::regclass -- by the search path of who calls
) returns void language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $install$
declare
  by_row boolean := outboxd_capture.needs_row_triggers(erp_table);
  told outboxd_capture.installed := row(erp_table, outboxd_capture.quoted(erp_table), type, watched, key, payload, condition,
    outbox, by_row, now(), 3, null, outboxd_capture.quoted(outbox));
  function_name text;
  each regclass;
  former regprocedure;
begin
  perform outboxd_capture.refuse_role(erp_table, outbox);
  told.columns := outboxd_capture.columns_read(told);
  perform outboxd_capture.try_out(told);
  -- A function takes its triggers with it: to drop these alone, one must own the table.
  for former in
    select distinct tgfoid from pg_trigger
    where tgrelid in (select outboxd_capture.family(erp_table)) and tgparentid = 0
      and tgname in ('outboxd_capture_insert', 'outboxd_capture_update', 'outboxd_capture_row') and (tgname = 'outboxd_capture_row') <> by_row
  loop
    execute format('drop function %s cascade', former);
  end loop;
  -- By the oid: two long names may begin alike, and a table that was dropped leaves its function behind.
  function_name := format('%I', format('capture_%s_%s', erp_table::oid, (select relname from pg_class where oid = erp_table))::name);
  execute outboxd_capture.trigger_function(function_name, told);
  execute format('revoke all on function outboxd_capture.%s() from public', function_name);
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

create or replace function outboxd_capture.key_types(of oid) returns oid[] stable language sql
set search_path = pg_catalog, pg_temp as $$
  select array_agg(atttypid order by attnum) from pg_attribute where attrelid = $1 and attname = any (outboxd_capture.primary_key($1))
$$;

-- Why a table must not be read by the trigger: null if it may be. `name` and `key_types` are those of the day of its installation.
create or replace function outboxd_capture.refuse_reading(of oid, name text, key_types oid[]) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select case when to_regclass(name) is distinct from $1::regclass then name || ' was renamed: install it again'
    when exists (select from outboxd_capture.strange_owners(current_user, $1)) then 'the owner of ' || name || ' is not a member of ' || current_user || ': install it again'
    when outboxd_capture.key_types($1) is distinct from $3 then 'the primary key of ' || name || ' was changed: install it again' end
$$;

-- Settings that any session may change, and that decide how our SQL is read and what a value is as text.
create or replace function outboxd_capture.settings() returns text immutable language sql set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('set %s = %L', name, value), ' ') from (values ('standard_conforming_strings', 'on'), ('transform_null_equals', 'off'),
    ('array_nulls', 'on'), ('quote_all_identifiers', 'off'), ('DateStyle', 'ISO'), ('IntervalStyle', 'postgres'), ('TimeZone', 'UTC'),
    ('extra_float_digits', '1'), ('bytea_output', 'hex'), ('xmloption', 'content')) each(name, value)
$$;

-- The text of a table's trigger function. Its exception block is a subtransaction: it costs some microseconds, and the ERP's
-- statement goes through. Outside of that block stands nothing that can fail. A lock that a session holds on the outbox is waited for
-- once in a transaction, for a second; then the rows are noted.
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
  new_row text := format('(select %s%s) n', outboxd_capture.plain_row(told.erp_table, case when told.by_row then 'new' else 'n' end, told.columns),
    case when told.by_row then '' else ' from new_rows n' end);
  old_row text := format('(select %s%s) o', outboxd_capture.plain_row(told.erp_table, case when told.by_row then 'old' else 'o' end, told.columns),
    case when told.by_row then '' else ' from old_rows o' end);
  both_rows text := case when told.by_row then new_row || ' cross join ' || old_row
    else format('%s left join %s on (%s)', new_row, old_row, outboxd_capture.same_row(told.erp_table, 'n', 'o')) end;
  -- Of a single row nothing is counted: that would cost more than capturing it.
  count_rows text := case when told.by_row then '' else format('if tg_op = ''UPDATE'' then
        perform from new_rows offset 1 limit 1;
        if found then
          select sum(times) > 100, max(times) > 1 into many, again
            from (select count(*) as times from %s group by %s) each;
        end if;
      end if;', new_row, outboxd_capture.columns_of('n', outboxd_capture.primary_key(told.erp_table))) end;
  deepest text := format('outboxd_capture.deepest_%s', told.erp_table::oid);
begin
  return format($function$
    create or replace function outboxd_capture.%1$s() returns trigger language plpgsql security definer
    set search_path = pg_catalog, pg_temp set lock_timeout = '1s' %3$s as %2$L$function$, function_name, format($body$
    declare
      seqscan text;
      deepest int := coalesce(substring(current_setting(%6$L, true) from '^[0-9]{1,4}$'), '0')::int; -- any session may set it
      many boolean;
      again boolean;
      refused text;
      why_state text;
      why text;
      note_state text;
      noted bigint := 10000;
      written bigint;
    begin
      if tg_relid <> all (%9$L::oid[]) then
        if not exists (select from pg_inherits where inhrelid = tg_relid and inhparent = any (%9$L::oid[]))
          and not exists (select from outboxd_capture.installed where erp_table = outboxd_capture.root_of(tg_relid) and table_name = %8$L) then
          raise log 'outboxd_capture: the table %% is not installed, so its changes are not captured', tg_relid;
          return null;
        end if;
      end if;
      if to_regclass(%14$L) <> %15$s then
        if to_regclass(%14$L) not in (select outbox from outboxd_capture.installed where table_name = %8$L) then
          raise exception sqlstate '42P01' using message = %16$L;
        end if;
      end if;
      if current_setting('outboxd_capture.locked', true) <> '' then
        raise exception sqlstate '55P03' using message = 'the outbox is locked: this transaction has waited for it once';
      end if;
      if pg_trigger_depth() > greatest(deepest, 1) then
        perform set_config(%6$L, pg_trigger_depth()::text, true);
      end if;
      %7$s
      again := again is true or deepest > pg_trigger_depth();
      if again then
        refused := outboxd_capture.refuse_reading(%10$s, %8$L, %11$L);
        if refused is not null then
          raise exception sqlstate '42P01' using message = refused;
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
      get diagnostics written = row_count;
      if again then
        perform set_config('enable_seqscan', seqscan, true);
      elsif written = 0 and (exists (select from pg_trigger where tgrelid = %15$s and tgtype & 7 = 7) -- before each inserted row
          or exists (select from pg_rewrite where ev_class = %15$s and ev_type = '3')) then
        if tg_op = 'INSERT' then
          perform from (%17$s) made;
        else
          perform from (%18$s) made;
        end if;
        if found then
          raise exception sqlstate '55000' using message = 'a trigger or a rule of the outbox keeps rows out';
        end if;
      end if;
      return null;
    exception when others or assert_failure then
      get stacked diagnostics why_state = returned_sqlstate, why = message_text;
      if why_state = '55P03' and coalesce(current_setting('outboxd_capture.locked', true), '') = '' then
        perform set_config('outboxd_capture.locked', 'outbox', true);
      end if;
      begin
        if pg_trigger_depth() > greatest(deepest, 1) then
          perform set_config(%6$L, pg_trigger_depth()::text, true);
        end if;
        if current_setting('outboxd_capture.locked', true) = 'notes' then
          perform set_config('lock_timeout', '1ms', true);
        end if;
        if outboxd_capture.has_room(100000) then
          execute format('insert into outboxd_capture.error (erp_table, operation, row_key, sqlstate, message)
              select $1, $2, %%s, $3, left($4, 1000) %5$s limit 10000',
              outboxd_capture.key_image(outboxd_capture.root_of(tg_relid), %12$L))
            using outboxd_capture.root_of(tg_relid), tg_op, why_state, why%13$s;
          get diagnostics noted = row_count;
        end if;
        if noted = 10000 then
          perform outboxd_capture.note_unknown(tg_relid, tg_op, why_state, why);
        end if;
      exception when others or assert_failure then
        get stacked diagnostics note_state = returned_sqlstate;
        begin
          if note_state = '55P03' then
            raise exception sqlstate '55P03';
          end if;
          perform outboxd_capture.note_unknown(tg_relid, tg_op, why_state, why);
        exception when others or assert_failure then
          get stacked diagnostics note_state = returned_sqlstate;
          -- To the server's log alone: a client whose encoding has no letter for a name would make the statement fail.
          raise log 'outboxd_capture: a change of the table %% was not captured (%%) and could not be noted (%%)', tg_relid, why_state, note_state;
        end;
        if note_state = '55P03' then
          perform set_config('outboxd_capture.locked', 'notes', true);
        end if;
      end;
      return null;
    end $body$,
    insert_into || outboxd_capture.query(told, new_row, false, false),
    insert_into || outboxd_capture.query(told, both_rows, true, false),
    insert_into || outboxd_capture.query(told, new_row, false, true),
    insert_into || outboxd_capture.query(told, both_rows, true, true),
    case when told.by_row then '' else 'from new_rows n' end, deepest, count_rows, told.table_name,
    array(select outboxd_capture.tree(told.erp_table)), told.erp_table::oid, outboxd_capture.key_types(told.erp_table),
    case when told.by_row then '($5)' else 'n' end, case when told.by_row then ', new' else '' end,
    outboxd_capture.quoted(told.outbox), told.outbox::oid, outboxd_capture.quoted(told.outbox) || ' was replaced: install it again',
    outboxd_capture.query(told, new_row, false, false), outboxd_capture.query(told, both_rows, true, false)),
    outboxd_capture.settings());
end $text$;

-- The table that was installed, of which this one is a partition or a child.
create or replace function outboxd_capture.root_of(of oid) returns regclass stable language sql
set search_path = pg_catalog, pg_temp as $$
  with recursive family as (
    select $1 as id, 0 as far union select inhparent, far + 1 from pg_inherits join family on id = inhrelid
  )
  select coalesce((select erp_table from family join outboxd_capture.installed on erp_table = id order by far limit 1), $1::regclass)
$$;

-- The note of a row: its primary key. An array is noted as text.
create or replace function outboxd_capture.key_image(of oid, alias text) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select format('jsonb_build_object(%s)', string_agg(format('%L, %s', name,
    case when t.typcategory = 'A' then format('format(''%%s'', %s)', value) else value end), ', '))
  from outboxd_capture.plain($1, alias, outboxd_capture.primary_key($1))
  join pg_attribute a on a.attrelid = $1 and a.attname = name join pg_type t on t.oid = a.atttypid
$$;

-- Notes have a bound: ids tell how many there are at most, without counting.
create or replace function outboxd_capture.has_room(bound bigint) returns boolean stable language sql
set search_path = pg_catalog, pg_temp as $$
  select coalesce((select id from outboxd_capture.error order by id desc limit 1)
    - (select id from outboxd_capture.error order by id limit 1) < bound, true)
$$;

-- Notes, once for each table and transaction, that rows were changed and it is not known which. A note of another transaction does not
-- do: `dismiss` may be about to delete it.
create or replace function outboxd_capture.note_unknown(of oid, operation text, why_state text, why text) returns void language sql
set search_path = pg_catalog, pg_temp as $$
  insert into outboxd_capture.error (erp_table, operation, sqlstate, message)
    select root, operation, why_state, left(why, 1000) from outboxd_capture.root_of(of) root
    where not exists (select from outboxd_capture.error e where e.erp_table = root and e.row_key is null
      and (e.xact = pg_current_xact_id() or not outboxd_capture.has_room(1000000)))
$$;

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
  made text;
  written bigint;
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    raise exception 'retry reads tables of the ERP, whose policies and indexes may run code of their owners: not as a superuser.'
      using hint = format('set role %I;', (select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'outboxd_capture'));
  end if;
  for told in select * from outboxd_capture.installed order by table_name loop
    told.columns := outboxd_capture.columns_read(told); -- as they are now
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
        if to_regclass(told.outbox_name) is distinct from told.outbox then
          raise exception 'the outbox was renamed or replaced: install it again';
        end if;
        if not noted.row_key ?& outboxd_capture.primary_key(told.erp_table)::text[] then
          raise exception 'the primary key has other columns by now';
        end if;
        if exists (select from outboxd_capture.strange_owners((select pg_get_userbyid(nspowner) from pg_namespace
            where nspname = 'outboxd_capture'), told.erp_table)) then
          raise exception 'the owner of the table is not a member of the role that installed it: install it again';
        end if;
        this_row := format('%s n cross join (select %s) o where %s', row_name,
          (select string_agg(format('%L::%s as %I', noted.row_key ->> a.attname, format_type(outboxd_capture.plain_type(a.atttypid), -1), a.attname), ', ')
            from pg_attribute a where a.attrelid = told.erp_table and a.attname = any (outboxd_capture.primary_key(told.erp_table))),
          outboxd_capture.same_row(told.erp_table, 'n', 'o', indexed => true));
        execute format('select exists (select from %s)', this_row) into is_there;
        execute format('select true from %s for share of n skip locked', this_row) into is_mine;
        if is_there and is_mine is null then
          busy := busy + 1;
          continue;
        end if;
        made := outboxd_capture.query(told, format('(select %s from %s) n',
          outboxd_capture.plain_row(told.erp_table, 'n', told.columns), this_row), false, false);
        execute format('insert into %s (type, key, payload) %s', outboxd_capture.quoted(told.outbox), made);
        get diagnostics written = row_count;
        execute format('select exists (%s)', made) into is_mine;
        if written = 0 and is_mine then
          raise exception 'a trigger or a rule of the outbox keeps rows out';
        end if;
        delete from outboxd_capture.error where id = any (noted.ids);
        if is_there then captured := captured + 1; else gone := gone + 1; end if;
      exception when others or assert_failure then
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

-- Those that no installed table uses; a trigger that another role made with one goes with it.
create or replace function outboxd_capture.drop_unused_functions() returns void language plpgsql
set search_path = pg_catalog, pg_temp as $unused$
declare
  unused regprocedure;
  its text;
begin
  for unused, its in
    select p.oid, string_agg(tgrelid::text, ', ') from pg_proc p left join pg_trigger on tgfoid = p.oid
    where p.pronamespace = 'outboxd_capture'::regnamespace and p.prorettype = 'trigger'::regtype and pg_has_role(p.proowner, 'usage')
      and not exists (select from pg_trigger t, outboxd_capture.installed i where t.tgfoid = p.oid and t.tgrelid in (select outboxd_capture.tree(i.erp_table)))
    group by p.oid
  loop
    begin
      execute format('drop function %s cascade', unused);
      if its is not null then
        raise warning 'dropped triggers on the tables with the oids %, on which change capture is not installed', its;
      end if;
    exception when lock_not_available then
      raise warning 'another session uses the tables with the oids %, so their triggers are still there: run this again', its;
    end;
  end loop;
end $unused$;

create or replace function outboxd_capture.remove(erp_table regclass) returns void language plpgsql
set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $remove$
declare
  its regprocedure;
begin
  for its in
    select distinct t.tgfoid from pg_trigger t join outboxd_capture.installed i on i.erp_table = t.tgrelid join pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = remove.erp_table and t.tgparentid = 0 and p.pronamespace = 'outboxd_capture'::regnamespace
  loop
    execute format('drop function %s cascade', its); -- with its triggers
  end loop;
  delete from outboxd_capture.installed i where i.erp_table = remove.erp_table;
  delete from outboxd_capture.error e where e.erp_table = remove.erp_table;
  perform outboxd_capture.drop_unused_functions();
end $remove$;

-- What is not captured, a line for each table and reason, without the ERP's data: everybody may read it.
create view outboxd_capture.trouble as
  with recursive relation as (
    select i.erp_table::oid as root, i.erp_table::oid as id from outboxd_capture.installed i
    union select r.root, c.oid from relation r join pg_inherits h on h.inhparent = r.id join pg_class c on c.oid = h.inhrelid
      where c.relkind in ('r', 'p') and c.oid not in (select erp_table from outboxd_capture.installed)
  ),
  box as ( -- outboxes with their partitions
    select distinct outbox::oid as root, outbox::oid as id from outboxd_capture.installed
    union select root, inhrelid from box join pg_inherits on inhparent = id
  ),
  used(root, class, id) as ( -- as in strange_owners: the view calls no function of ours, since readers run them with their own rights
    select root, 'pg_class'::regclass::oid, id from box
    union select root, next.* from used cross join lateral (
      select refclassid, refobjid from pg_depend where classid = class and objid = id and refobjid >= 16384
        and refclassid in ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass)
      union all select classid, objid from pg_depend where refclassid = class and refobjid = id and deptype in ('a', 'i')) next
  ),
  owners as (
    select root, coalesce(relowner, proowner, typowner, oprowner, opcowner) as owner from used
      left join pg_class r on class = 'pg_class'::regclass and r.oid = id left join pg_proc p on class = 'pg_proc'::regclass and p.oid = id
      left join pg_type t on class = 'pg_type'::regclass and t.oid = id left join pg_operator o on class = 'pg_operator'::regclass and o.oid = id
      left join pg_opclass c on class = 'pg_opclass'::regclass and c.oid = id
    union select root, relowner from relation join pg_class c on c.oid = id
  ),
  bearer as materialized ( -- the table that has the name by now
    select i.erp_table as of, b.oid from outboxd_capture.installed i
    join (pg_class b join pg_namespace s on s.oid = b.relnamespace) on array[s.nspname::text, b.relname] = parse_ident(i.table_name)
  ),
  uncovered as (
    select distinct i.table_name, case
        when c.oid is null then format('it was dropped; if it is there again, install it again, else remove(%L)', i.erp_table::oid)
        when bearer.oid is null then format('it is %s now: install it again by this name', c.oid::regclass)
        when bearer.oid <> c.oid then format('it is %s now, and nothing captures the table that bears its name now: install both, or remove(%L)',
          c.oid::regclass, c.oid::regclass)
        when not i.by_row and exists (select from pg_inherits where inhrelid = c.oid)
          then 'it has become a partition or a child of another table: install it again'
        when i.version < 3 and r.id = c.oid then 'it was installed by an earlier version: install it again'
        when subscription is not null then format('rows that the subscription %I writes to %s', subscription, r.id::regclass)
        when owner is not null and r.id = c.oid
          then format('code of %I runs with the rights of %I, of which it is not a member: install it again', owner, pg_get_userbyid(home.nspowner))
        when r.id = c.oid and exists (select from pg_trigger join box on tgrelid = box.id where root = i.outbox and tgdeferrable)
          then format('a constraint of %s is deferrable, so it may fail at the COMMIT of the ERP', i.outbox)
        when r.id = c.oid and exists (select from pg_rewrite join pg_class b on b.oid = ev_class where ev_class = i.outbox and ev_type = '3' and b.relkind <> 'v')
          then format('%s has a rule, which may keep rows out: drop it', i.outbox)
        when i.payload is null and r.id = c.oid and exists (select from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
          and attgenerated <> 'v' and attname <> all (i.columns)) then 'it has a new column, which is not sent: install it again'
        when covered then null
        when r.id <> c.oid then format('rows written to %s: install it again', r.id::regclass)
        else 'its triggers are gone or switched off: install it again'
      end as reason
    from outboxd_capture.installed i left join pg_class c on c.oid = i.erp_table join relation r on r.root = i.erp_table
    join pg_namespace home on home.nspname = 'outboxd_capture'
    left join bearer on bearer.of = i.erp_table
    left join lateral (select pg_get_userbyid(owner) as owner from owners where root in (i.erp_table, i.outbox)
      and not pg_has_role(owners.owner, home.nspowner, 'member') limit 1) strange on true
    -- A subscription's worker fires only triggers for each row that are set to ENABLE ALWAYS.
    left join lateral (select s.subname as subscription from pg_subscription_rel l join pg_subscription s on s.oid = l.srsubid
      where l.srrelid = r.id and not exists (select from pg_trigger t where t.tgrelid = r.id and t.tgname = 'outboxd_capture_row' and t.tgenabled = 'A')
      limit 1) subscribed on true
    cross join lateral (select count(*) >= case when i.by_row then 1 else 2 end as covered from pg_trigger t join pg_proc p on p.oid = t.tgfoid
      where t.tgrelid = r.id and p.pronamespace = home.oid and t.tgenabled in ('O', 'A')) has
  )
  select coalesce(i.table_name, e.erp_table::text) as table_name, count(*) as notes,
    count(*) filter (where row_key is null) > 0 as has_unknown, min(noted_at) as since,
    -- The messages of these classes name columns, tables and locks; others quote values.
    format('%s%s', max(sqlstate), ': ' || max(message) filter (where sqlstate ~ '^(0A|3F|40|42|53|54|55)')) as reason
  from outboxd_capture.error e left join outboxd_capture.installed i using (erp_table)
  group by 1
  union all
  select table_name, 0, false, null, reason from uncovered where reason is not null
  union all
  select distinct t.tgrelid::regclass::text, 0, false, null::timestamptz,
    'it has a trigger with a function of change capture, which is not installed on it: drop that trigger'
  from pg_trigger t join pg_proc p on p.oid = t.tgfoid
  where p.pronamespace = 'outboxd_capture'::regnamespace and t.tgrelid not in (select id from relation);

do $$
declare
  each regprocedure;
begin
  perform outboxd_capture.drop_unused_functions();
  for each in select oid from pg_proc where pronamespace = 'outboxd_capture'::regnamespace and proname in ('install', 'retry') loop
    execute replace(outboxd_capture.settings(), 'set ', format('; alter function %s set ', each));
  end loop;
end $$;

revoke all on all functions in schema outboxd_capture from public;
grant usage on schema outboxd_capture to public;
grant select on outboxd_capture.trouble to public;

commit;
