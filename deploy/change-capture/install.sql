-- Change capture for outboxd: triggers on tables of an ERP that write one row into the outbox for each document that changed
-- (docs/start/outbox.md). A document is a row of one table, with the rows of other tables that point at it: an order and its lines.
--
-- Run this file once in the ERP's database, as a role of its own that is not a superuser; that changes no table. A superuser gets the
-- statements that make the role. Then, as that role, for each kind of document:
--
--   select outboxd_capture.install('public.sales_order',
--     type      => 'order',                                    -- which mapping file
--     children  => '{public.sales_line.order_id}',             -- a change of a line is a change of its order
--     condition => $$n.status = 'released'$$,                  -- the daemon asks it of the document n before it sends
--     payload   => '{customerId, customer_no, amount, net}',   -- if the mapping file has no `source`: name, column, …; null: all columns
--     key       => 'customer_no',                              -- documents of one key are sent in order; null: only changes of one document
--     outbox    => 'public.outbox');
--   select outboxd_capture.remove('public.sales_order');
--
-- To install again with other settings replaces the triggers. remove.sql takes everything away.
-- A deleted document is not captured, nor TRUNCATE; and nothing if session_replication_role is replica.
--
-- The ERP's own statement never fails by this. Changes that could not be captured are noted in outboxd_capture.error:
--
--   select * from outboxd_capture.trouble;                     -- what is noted and what is not covered; everybody may read it
--   select * from outboxd_capture.retry();                     -- captures the noted documents
--   select outboxd_capture.dismiss('public.sales_order');      -- forgets the notes of a table
--
-- The trigger functions run with the rights of the role that installed them. No code of another role does: only that role may execute
-- the functions; they read nothing but keys, by the output functions of types that are Postgres's own; and they write only to an outbox
-- whose owner is a member of the installing role, because the triggers and defaults of an outbox are code, too.

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
set local client_min_messages = warning;   -- without NOTICEs such as "does not exist, skipping"
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
-- Tables that an earlier version was installed on go on with its trigger functions, and with what those call, until they are installed
-- again. Only what would be in the way of this version is dropped.
drop function if exists outboxd_capture.install(regclass, text, name[], name, text[], text, regclass);
drop function if exists outboxd_capture.retry(int);

-- What `install` was told for each document.
create table if not exists outboxd_capture.installed (
  erp_table    regclass primary key,
  table_name   text not null,   -- as it was on that day; what remains if the table is dropped
  type         text not null,
  key          name,
  payload      text[],
  condition    text,
  outbox       regclass not null,
  installed_at timestamptz not null default now(),
  version      int not null default 1,   -- of the trigger functions
  outbox_name  text,                     -- as it was on that day
  key_column   name,                     -- the primary key
  children     text[],                   -- schema.table.column of each reference to the document
  number       int generated by default as identity   -- in the names of its triggers and functions
);
do $$
begin
  if not exists (select from pg_attribute where attrelid = 'outboxd_capture.installed'::regclass and attname = 'number') then
    alter table outboxd_capture.installed drop column if exists watched, drop column if exists by_row, drop column if exists columns,
      add column if not exists version int not null default 1, add column if not exists outbox_name text, add column key_column name,
      add column children text[], add column number int generated by default as identity;
  end if;
end $$;

-- Documents that could not be captured, noted in the ERP's own transaction. Triggers only add to this table and never read it, so no
-- writer waits for another, and no serializable transaction fails by another's notes.
create table if not exists outboxd_capture.error (
  id        bigint generated always as identity primary key,
  erp_table regclass not null,
  operation text not null,
  row_key   jsonb,           -- the document's primary key; null: documents were changed, and it is not known which
  sqlstate  text not null,
  message   text not null,
  noted_at  timestamptz not null default clock_timestamp()
);
do $$
begin
  if to_regclass('outboxd_capture.error_of_table') is null then
    create index error_of_table on outboxd_capture.error (erp_table, id);
  end if;
end $$;

create or replace function outboxd_capture.quoted(of regclass) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select format('%I.%I', nspname, relname) from pg_class c join pg_namespace s on s.oid = c.relnamespace where c.oid = $1
$$;

-- A table with its partitions, and with the tables that inherit from it.
create or replace function outboxd_capture.tree(of oid) returns setof oid stable language sql
set search_path = pg_catalog, pg_temp as $$
  with recursive tree as (select $1 as id union select inhrelid from tree join pg_inherits on inhparent = id) select id from tree
$$;

-- The type of Postgres's own by which a key can be read: bigint for integers, numeric with its scale, text, bpchar or uuid; null for a
-- column of any other type. A domain counts as its base. A virtual generated column is not visible to triggers.
create or replace function outboxd_capture.key_type(of oid, column_name name) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  with recursive base as (
    select t.oid, typtype, typbasetype, typtypmod, atttypmod as mod from pg_attribute a join pg_type t on t.oid = atttypid
      where attrelid = $1 and attname = $2 and attnum > 0 and not attisdropped and attgenerated <> 'v'
    union all select t.oid, t.typtype, t.typbasetype, t.typtypmod, base.typtypmod from base join pg_type t on t.oid = base.typbasetype where base.typtype = 'd'
  )
  select case when typname in ('int2', 'int4', 'int8') then 'bigint' when typname = 'numeric' then format_type(oid, mod)
      when typname in ('text', 'varchar') then 'text' when typname in ('bpchar', 'uuid') then typname end
  from base join pg_type using (oid) where base.typtype <> 'd' and oid < 16384
$$;

-- The tables that a document is made of, with the columns that point at it. `is_document` is true for its own.
create or replace function outboxd_capture.parts(told outboxd_capture.installed)
returns table (name text, is_document boolean, references_by name[]) stable language sql set search_path = pg_catalog, pg_temp as $$
  select name, bool_or(is_document), array_agg(column_name) filter (where column_name is not null) from (
    select told.table_name as name, true as is_document, null::name as column_name
    union all select format('%I.%I', names[1], names[2]), false, names[3]::name from unnest(told.children) child, parse_ident(child) names
  ) part group by name order by bool_or(is_document) desc, name
$$;

-- A key column of the row r as text or number. `format` calls the output function of the column's type, never a cast or an operator,
-- which the type's owner may have written if the column was given another type after the installation.
create or replace function outboxd_capture.value_sql(of oid, column_name name) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select format(case when type in ('text', 'uuid') then '%s' when type = 'bpchar' then 'rtrim(%s)' else '(%s)::' || type end,
    format('case num_nulls(r.%1$I) when 0 then format(''%%s'', r.%1$I) end', column_name)) from outboxd_capture.key_type(of, column_name) type
$$;

-- Documents (id, key) of the rows of a transition table.
create or replace function outboxd_capture.rows_sql(told outboxd_capture.installed, part regclass, columns name[], source text)
returns text stable language sql set search_path = pg_catalog, pg_temp as $$
  select string_agg(format('select %s, %s from %s r', outboxd_capture.value_sql(part, name),
    case when told.key is null then 'null::text' else format('(%s)::text', outboxd_capture.value_sql(part, told.key)) end, source), ' union all ')
  from unnest(columns) name
$$;

-- Writes outbox rows for the documents in two arrays, ids and keys.
create or replace function outboxd_capture.insert_sql(told outboxd_capture.installed, ids text, keys text) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select format('insert into %s (type, key, payload) select %L, coalesce(d.key, d.id::text), jsonb_build_object(''document'', %L::text, ''id'', d.id)
        from unnest(%s, %s) d(id, key)', told.outbox_name, told.type, told.table_name, ids, keys)
$$;

-- The text of the trigger function of one part of a document.
--
-- A transaction writes one row for each document: the setting outboxd_capture.written_N lists those that it has written, after the
-- transaction's id. A savepoint that is rolled back takes its entries with it. The list has a bound; a document beyond it may be written
-- again, which costs a row and no request, because the daemon leaves out what it sent before.
--
-- The exception block is a subtransaction: it costs some microseconds, and the ERP's statement goes through. Nothing outside of that block
-- can fail. A transaction waits for a lock on the outbox once, for a second; then it notes its documents at once.
create or replace function outboxd_capture.function_sql(function_name text, told outboxd_capture.installed, part regclass, is_document boolean, references_by name[])
returns text stable language plpgsql set search_path = pg_catalog, pg_temp as $text$
declare
  key_type text := outboxd_capture.key_type(told.erp_table, told.key_column);
  -- A text is written in hexadecimal digits, so that the list can be searched for it.
  entry text := format(case when key_type in ('text', 'bpchar') then 'encode(convert_to(%s, getdatabaseencoding()), ''hex'')' else '%s::text' end, 'id');
  new_rows text := outboxd_capture.rows_sql(told, part, case when is_document then array[told.key_column] else '{}' end || references_by, 'new_rows');
  old_rows text := outboxd_capture.rows_sql(told, part, references_by, 'old_rows');
  read_rows text := format('select array_agg(id order by id), array_agg(key order by id) into ids, keys from (
            select distinct on (id) id, key from (%%s) written(id, key) where id is not null and strpos(seen, '' '' || %s || '' '') = 0) changed', entry);
begin
  return format($function$
    create function %1$s() returns trigger language plpgsql security definer
    set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as %2$L$function$, function_name, format($body$
    declare
      this_transaction text := coalesce(pg_current_xact_id_if_assigned()::text, '');
      seen text := coalesce(current_setting(%1$L, true), '');
      ids %2$s[];
      keys text[];
      written bigint;
      why_state text;
      why text;
      note_state text;
    begin
      if not starts_with(seen, this_transaction || ': ') then
        seen := this_transaction || ': ';
      end if;
      if tg_op = 'INSERT' then
        %3$s;
      elsif tg_op = 'UPDATE' then
        %4$s;%5$s
      end if;
      if ids is null then
        return null;
      end if;
      if format('%%L.%%L', tg_table_schema, tg_table_name) not in (%6$s) then
        raise exception sqlstate '42P01' using message = %7$L;
      end if;
      if to_regclass(%8$L) is distinct from %9$s and to_regclass(%8$L) is distinct from (select outbox from outboxd_capture.installed where number = %10$s) then
        raise exception sqlstate '42P01' using message = %11$L;
      end if;
      if current_setting('outboxd_capture.locked', true) <> '' then
        raise exception sqlstate '55P03' using message = 'the outbox is locked: this transaction has waited for it once';
      end if;
      %12$s;
      get diagnostics written = row_count;
      if written < cardinality(ids) then
        raise exception sqlstate '55000' using message = 'a trigger or a rule of the outbox keeps rows out';
      end if;
      if length(seen) < 16000 then
        perform set_config(%1$L, seen || (select string_agg(%13$s || ' ', '') from unnest(ids[1:500]) id), true);
      end if;
      return null;
    exception when others or assert_failure then
      get stacked diagnostics why_state = returned_sqlstate, why = message_text;
      if why_state = '55P03' and coalesce(current_setting('outboxd_capture.locked', true), '') = '' then
        perform set_config('outboxd_capture.locked', 'outbox', true);
      end if;
      begin
        perform outboxd_capture.note(%10$s, tg_op, to_jsonb(ids), why_state, why);
      exception when others or assert_failure then
        get stacked diagnostics note_state = returned_sqlstate;
        if note_state = '55P03' then
          perform set_config('outboxd_capture.locked', 'notes', true);
        end if;
        -- To the server's log alone: a client whose encoding has no letter for a name would make the statement fail.
        raise log 'outboxd_capture: a change of the table %% was not captured (%%) and could not be noted (%%)', tg_relid, why_state, note_state;
      end;
      return null;
    end $body$,
    'outboxd_capture.written_' || told.number,
    case when key_type in ('bpchar', 'uuid') then 'text' else key_type end,
    format(read_rows, new_rows),
    format(read_rows, concat_ws(' union all ', new_rows, old_rows)),
    case when old_rows is not null then format('
      else
        %s;', format(read_rows, old_rows)) end,
    (select string_agg(format('%L', format('%L.%L', nspname, relname)), ', ') from pg_class c join pg_namespace s on s.oid = relnamespace
      where c.oid in (select outboxd_capture.tree(part))),
    format('%s was renamed: install %s again', outboxd_capture.quoted(part), told.table_name),
    told.outbox_name, told.outbox::oid, told.number, told.outbox_name || ' was replaced: install it again',
    outboxd_capture.insert_sql(told, 'ids', 'keys'), entry));
end $text$;

-- Notes documents, up to 100 MB of notes; beyond that, and if the ids are not known, once for each transaction that some were changed.
create or replace function outboxd_capture.note(of int, operation text, ids jsonb, why_state text, why text) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $note$
declare
  its outboxd_capture.installed;
  unknown text := 'outboxd_capture.unknown_' || of;
  this_transaction text := pg_current_xact_id();
begin
  if current_setting('outboxd_capture.locked', true) = 'notes' then
    perform set_config('lock_timeout', '1ms', true);
  end if;
  select * into its from outboxd_capture.installed where number = of;
  if jsonb_array_length(ids) <= 100000 and pg_relation_size('outboxd_capture.error') < 100000000 then
    insert into outboxd_capture.error (erp_table, operation, row_key, sqlstate, message)
      select its.erp_table, note.operation, jsonb_build_object(its.key_column, id), why_state, left(why, 1000) from jsonb_array_elements(ids) id;
  elsif current_setting(unknown, true) is distinct from this_transaction and pg_relation_size('outboxd_capture.error') < 200000000 then
    insert into outboxd_capture.error (erp_table, operation, sqlstate, message) values (its.erp_table, note.operation, why_state, left(why, 1000));
    perform set_config(unknown, this_transaction, true);
  end if;
end $note$;

-- Refuses a role that may do more than capture needs, or less, and prints the statements that make the right one.
create or replace function outboxd_capture.refuse_role(told outboxd_capture.installed) returns void language plpgsql
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
          select outboxd_capture.tree(id) from outboxd_capture.installed i cross join lateral (select i.outbox::oid union select to_regclass(name)::oid from outboxd_capture.parts(i)) each(id))
      limit 1)
  ) reasons;
  if wrong is not null then
    role := 'outboxd_capture';
    wrong := format('%I %s: the role that installs change capture must have few rights, because its trigger functions run with them.', current_user, wrong);
  end if;
  with part as (select tree as id from outboxd_capture.parts(told), outboxd_capture.tree(to_regclass(name)) tree where tree is not null),
  needed as (
    select 1 as n, format('grant %I to %I;', role, pg_get_userbyid(owner)) as needed from outboxd_capture.outbox_owner o
      where o.outbox = told.outbox and not coalesce((select pg_has_role(o.owner, oid, 'member') from pg_roles where rolname = role),
        (select rolsuper from pg_roles where oid = o.owner))
    union select 2, format('grant usage on schema %I to %I;', s.nspname, role) from pg_class c join pg_namespace s on s.oid = c.relnamespace
      where (c.oid = told.outbox or c.oid in (select id from part)) and not has_schema_privilege(case when wrong is null then role else 'public' end, s.oid, 'usage')
    union select 3, format('grant trigger on %s to %I;', outboxd_capture.quoted(id), role) from part
      where wrong is not null or not has_table_privilege(id, 'trigger')
    union select 4, format('grant insert on %s to %I;', told.outbox_name, role)
      where wrong is not null or not has_any_column_privilege(told.outbox, 'insert')
    union select 0, format('create role %I;                         -- unless it exists', role) where wrong is not null
    union select 5, format('set role %I;', role) where wrong is not null
  )
  select string_agg('  ' || needed, E'\n' order by n, needed) into grants from needed;
  if grants is not null then
    raise exception '%', coalesce(wrong, format('%I lacks rights that change capture of %s needs.', role, told.table_name))
      using errcode = '42501', hint = E'Run these statements, then install again:\n' || grants;
  end if;
end $refuse$;

-- Refuses in words what cannot work.
create or replace function outboxd_capture.refuse_settings(told outboxd_capture.installed, search_path text) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $refuse$
declare
  kind text := outboxd_capture.key_type(told.erp_table, told.key_column);
  part record;
  wrong text;
begin
  if told.key_column is null then
    raise exception '% has no primary key of one column, by which its documents could be known', told.table_name;
  elsif kind is null then
    raise exception 'the primary key %.% is neither an integer, a numeric, a uuid nor a text, and capture reads no others', told.table_name, told.key_column;
  end if;
  for part in select to_regclass(name)::oid as id, * from outboxd_capture.parts(told) loop
    if part.id is null then
      raise exception 'children: there is no table %', part.name using hint = 'Write schema.table.column.';
    elsif (select relkind from pg_class where oid = part.id) not in ('r', 'p') then
      raise exception '% is no table', part.name;
    elsif exists (select from pg_inherits where inhrelid = part.id) then
      raise exception '% is a part of %: name that table', part.name,
        (select outboxd_capture.quoted(inhparent) from pg_inherits where inhrelid = part.id limit 1);
    end if;
    select name into wrong from unnest(part.references_by) name
      where replace(outboxd_capture.key_type(part.id, name), 'bpchar', 'text') is distinct from replace(kind, 'bpchar', 'text') limit 1;
    if found then
      raise exception 'children: % has no column % of the type of %.%', part.name, wrong, told.table_name, told.key_column;
    end if;
  end loop;
  if told.key is not null and cardinality(told.children) > 0 then
    raise exception 'key: a document with children is sent in the order of its own changes; leave key out';
  elsif told.key is not null and outboxd_capture.key_type(told.erp_table, told.key) is null then
    raise exception 'key: % has no column % that is an integer, a numeric, a uuid or a text', told.table_name, told.key;
  end if;
  if cardinality(told.payload) % 2 = 1 then
    raise exception 'payload must be pairs: name in the payload, column';
  end if;
  select told.payload[i] into wrong from generate_series(2, cardinality(told.payload), 2) i
    where not exists (select from pg_attribute where attrelid = told.erp_table and attname = told.payload[i] and attnum > 0 and not attisdropped) limit 1;
  if found then
    raise exception '% has no column %', told.table_name, wrong;
  end if;
  if told.condition is not null then
    -- PREPARE reads the condition and runs nothing of it: its functions may be another role's.
    begin
      perform set_config('search_path', search_path, true);
      execute pg_catalog.format(E'prepare outboxd_capture_condition as select from %s n where (%s\n)', told.table_name, told.condition);
      deallocate outboxd_capture_condition;
      perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    exception when others then
      raise exception 'condition: %', sqlerrm;
    end;
  end if;
end $refuse$;

create or replace function outboxd_capture.install(
  erp_table regclass,
  type      text,
  watched   name[]   default null,   -- of 0.2, and not needed any more
  key       name     default null,
  payload   text[]   default null,
  condition text     default null,
  outbox    regclass default 'outbox'::text::regclass, -- by the search path of the role that calls
  children  text[]   default '{}',
  search_path text   default current_setting('search_path') -- in which names in the condition are looked for
) returns void language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '5s' set quote_all_identifiers = off as $install$
declare
  told outboxd_capture.installed;
  row_name text := outboxd_capture.quoted(erp_table);
  part record;
  each text;
  function_name text;
  written bigint;
begin
  if watched is not null then
    raise notice 'watched is not needed any more: a change of any column is captured, and the daemon leaves out a document that is the same as before.';
  end if;
  perform outboxd_capture.drop_functions_of(erp_table);
  -- A table of this name that was dropped has its successor.
  delete from outboxd_capture.installed i where i.erp_table = install.erp_table
    or (i.table_name = row_name and not exists (select from pg_class where oid = i.erp_table));
  insert into outboxd_capture.installed (erp_table, table_name, type, key, payload, condition, outbox, outbox_name, version, key_column, children)
    select install.erp_table, row_name, install.type, install.key, install.payload, install.condition, install.outbox, outboxd_capture.quoted(install.outbox), 4,
      (select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = indkey[0]
        where indrelid = install.erp_table and indisprimary and indnkeyatts = 1),
      (select coalesce(array_agg(format('%I.%I.%I', coalesce(names[cardinality(names) - 2], home.nspname), names[cardinality(names) - 1], names[cardinality(names)])), '{}')
        from unnest(install.children) child cross join lateral parse_ident(child) names)
    from pg_class c join pg_namespace home on home.oid = c.relnamespace where c.oid = install.erp_table
    returning * into told;
  perform outboxd_capture.refuse_role(told);
  perform outboxd_capture.refuse_settings(told, search_path);

  for part in select row_number() over () as position, to_regclass(name) as id, * from outboxd_capture.parts(told) loop
    -- No name of the ERP: a client whose encoding has no letter for it could not be told of an error.
    function_name := format('outboxd_capture.document_%s_%s', told.number, part.position);
    execute outboxd_capture.function_sql(function_name, told, part.id, part.is_document, part.references_by);
    execute format('revoke all on function %s() from public', function_name);
    -- A statement's triggers are those of the table that it names, so each partition has its own, too.
    for each in select outboxd_capture.quoted(tree) from outboxd_capture.tree(part.id) tree join pg_class on oid = tree where relkind in ('r', 'p') loop
      execute format('create trigger outboxd_capture_insert_%s after insert on %s referencing new table as new_rows
        for each statement execute function %s()', told.number, each, function_name);
      execute format('create trigger outboxd_capture_update_%s after update on %s referencing new table as new_rows%s
        for each statement execute function %s()', told.number, each, case when part.references_by is not null then ' old table as old_rows' end, function_name);
      if part.references_by is not null then
        execute format('create trigger outboxd_capture_delete_%s after delete on %s referencing old table as old_rows
          for each statement execute function %s()', told.number, each, function_name);
      end if;
    end loop;
  end loop;
  select reason into each from outboxd_capture.trouble t where t.table_name = told.table_name and notes = 0;
  if found then
    raise exception '%: %', told.table_name, each;
  end if;
  -- Tried on the outbox, and taken back.
  begin
    execute outboxd_capture.insert_sql(told, 'array[0]', 'null::text[]');
    get diagnostics written = row_count;
    if written = 0 then
      raise exception 'a trigger keeps rows out';
    end if;
    raise exception sqlstate 'OB001';
  exception
    when sqlstate 'OB001' then null;
    when others or assert_failure then
      raise exception '% does not take rows of change capture: % (%)', told.outbox_name, sqlerrm, sqlstate;
  end;
  perform outboxd_capture.replace_document_view();
  perform outboxd_capture.drop_unused_functions();
end $install$;

-- Captures noted documents. What is sent is read later, by the daemon.
create or replace function outboxd_capture.retry(at_most int default 1000)
returns table (erp_table text, captured int, failed int, reason text) language plpgsql
set search_path = pg_catalog, pg_temp set quote_all_identifiers = off as $retry$
declare
  told outboxd_capture.installed;
  notes bigint[];
  ids text[];
  written bigint;
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    raise exception 'retry writes to the outbox, whose triggers may be code of its owner: not as a superuser.'
      using hint = format('set role %I;', (select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'outboxd_capture'));
  end if;
  for told in select * from outboxd_capture.installed order by table_name loop
    with first as (select id, row_key from outboxd_capture.error e where e.erp_table = told.erp_table and row_key is not null order by id limit at_most)
      select array_agg(id), array_agg(distinct value) into notes, ids from first cross join lateral jsonb_each_text(row_key);
    continue when ids is null;
    erp_table := told.table_name; captured := 0; failed := 0; reason := null;
    begin
      if told.version < 4 then
        raise exception 'it was installed by an earlier version: install it again';
      elsif to_regclass(told.outbox_name) is distinct from told.outbox then
        raise exception '% was replaced: install it again', told.outbox_name;
      end if;
      execute outboxd_capture.insert_sql(told, '$1' || coalesce('::' || substring(outboxd_capture.key_type(told.erp_table, told.key_column), '^bigint|^numeric.*') || '[]', ''), 'null::text[]')
        using ids;
      get diagnostics written = row_count;
      if written < cardinality(ids) then
        raise exception 'a trigger or a rule of the outbox keeps rows out';
      end if;
      delete from outboxd_capture.error where id = any (notes);
      captured := cardinality(ids);
    exception when others or assert_failure then
      failed := cardinality(ids);
      reason := sqlerrm;
    end;
    return next;
  end loop;
end $retry$;

create or replace function outboxd_capture.dismiss(of regclass) returns bigint language sql
set search_path = pg_catalog, pg_temp as $$
  with gone as (delete from outboxd_capture.error where erp_table = $1 returning 1) select count(*) from gone
$$;

-- The trigger functions that `install` made for a table, this version's or an earlier one's, with their triggers.
create or replace function outboxd_capture.drop_functions_of(document regclass) returns void language plpgsql
set search_path = pg_catalog, pg_temp set quote_all_identifiers = off as $drop$
declare
  its regprocedure;
begin
  for its in
    select p.oid from pg_proc p where pronamespace = 'outboxd_capture'::regnamespace and prorettype = 'trigger'::regtype and (
      starts_with(proname, (select format('document_%s_', number) from outboxd_capture.installed where erp_table = document))
      or starts_with(proname, 'capture_') and exists (select from pg_trigger where tgfoid = p.oid and tgrelid = document))
  loop
    execute format('drop function %s cascade', its);
  end loop;
end $drop$;

-- Drops the trigger functions that no installed table uses, and a trigger that another role made with one; and, if no table of an
-- earlier version is left, what that version's trigger functions called.
create or replace function outboxd_capture.drop_unused_functions() returns void language plpgsql
set search_path = pg_catalog, pg_temp set quote_all_identifiers = off as $unused$
declare
  unused regprocedure;
  its text;
begin
  for unused, its in
    select p.oid, string_agg(tgrelid::text, ', ') from pg_proc p left join pg_trigger on tgfoid = p.oid
    where p.pronamespace = 'outboxd_capture'::regnamespace and p.prorettype = 'trigger'::regtype and pg_has_role(p.proowner, 'usage')
      and not exists (select from outboxd_capture.installed i where starts_with(p.proname, format('document_%s_', i.number))
        or i.version < 4 and exists (select from pg_trigger t where t.tgfoid = p.oid and t.tgrelid in (select outboxd_capture.tree(i.erp_table))))
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
  if not exists (select from outboxd_capture.installed where version < 4) then
    for unused in
      select oid from pg_proc where pronamespace = 'outboxd_capture'::regnamespace and prorettype <> 'trigger'::regtype and proname not in ('quoted',
        'tree', 'key_type', 'parts', 'value_sql', 'rows_sql', 'insert_sql', 'function_sql', 'note', 'refuse_role', 'refuse_settings', 'install', 'retry',
        'dismiss', 'drop_functions_of', 'drop_unused_functions', 'replace_document_view', 'remove')
    loop
      execute format('drop function %s', unused);
    end loop;
  end if;
end $unused$;

create or replace function outboxd_capture.remove(erp_table regclass) returns void language plpgsql
set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $remove$
begin
  perform outboxd_capture.drop_functions_of(erp_table);
  delete from outboxd_capture.installed i where i.erp_table = remove.erp_table;
  delete from outboxd_capture.error e where e.erp_table = remove.erp_table;
  perform outboxd_capture.replace_document_view();
  perform outboxd_capture.drop_unused_functions();
end $remove$;

-- outboxd_capture.document: what became of the last change of each document. A row that ended because the document was the same as before
-- does not count. It reads the outboxes with the rights of the role that asks.
create or replace function outboxd_capture.replace_document_view() returns void language plpgsql
set search_path = pg_catalog, pg_temp set quote_all_identifiers = off as $view$
declare
  outbox regclass;
  queries text[] := '{}';
  counts constant text := $$%1$s.payload ? 'document' and not (%1$s.status = 'discarded' and %1$s.error is not null and starts_with(%1$s.error, 'unchanged since '))$$;
begin
  for outbox in
    select distinct i.outbox from outboxd_capture.installed i where version >= 4 and 6 = (select count(*) from pg_attribute
      where attrelid = i.outbox and not attisdropped and (attname, atttypid::regtype::text) in (('payload', 'jsonb'), ('id', 'bigint'), ('status', 'text'),
        ('transaction_id', 'text'), ('error', 'text'), ('updated_at', 'timestamp with time zone')))
  loop
    queries := queries || format($$
      select r.payload ->> 'document' as table_name, r.payload ->> 'id' as id, r.status as state, r.transaction_id, r.error, r.updated_at, r.id as outbox_id
      from %1$s r where %2$s and not exists (select from %1$s later where later.payload ->> 'document' = r.payload ->> 'document'
        and later.payload ->> 'id' = r.payload ->> 'id' and later.id > r.id and %3$s)$$,
      outboxd_capture.quoted(outbox), format(counts, 'r'), format(counts, 'later'));
    if not exists (select from pg_index where indrelid = outbox and pg_get_indexdef(indexrelid) like '%->> ''document''%') then
      raise notice 'A query of outboxd_capture.document is quick with this index: create index concurrently on % ((payload ->> ''document''), (payload ->> ''id''), id) where payload ? ''document'';',
        outboxd_capture.quoted(outbox);
    end if;
  end loop;
  if queries = '{}' then
    queries := array['select null::text as table_name, null::text as id, null::text as state, null::text as transaction_id, null::text as error,
      null::timestamptz as updated_at, null::bigint as outbox_id where false'];
  end if;
  execute 'create or replace view outboxd_capture.document with (security_invoker = true) as ' || array_to_string(queries, ' union all ');
  grant select on outboxd_capture.document to public;
end $view$;

-- For the daemon, which reads the content of a document and asks the condition: everybody may read it.
create or replace view outboxd_capture.captured as
  select table_name as document, erp_table::oid as erp_table, key_column::text, type, children, condition, payload, outbox_name as outbox
  from outboxd_capture.installed where version >= 4;

-- The roles whose code runs if a row is written to an outbox: the owners of the table, and of the functions and types that its triggers,
-- defaults, constraints, indexes, policies and rules use.
create or replace view outboxd_capture.outbox_owner as
  with recursive box as (
    select distinct outbox::oid as root, outbox::oid as id from outboxd_capture.installed
    union select root, inhrelid from box join pg_inherits on inhparent = id
  ),
  used(root, class, id) as (
    select root, 'pg_class'::regclass::oid, id from box
    union select root, next.* from used cross join lateral (
      select refclassid, refobjid from pg_depend where classid = class and objid = id and refobjid >= 16384
        and refclassid in ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass)
      union all select classid, objid from pg_depend where refclassid = class and refobjid = id and deptype in ('a', 'i')) next -- its parts
  )
  select distinct root as outbox, coalesce(relowner, proowner, typowner, oprowner, opcowner) as owner from used
    left join pg_class r on class = 'pg_class'::regclass and r.oid = id left join pg_proc p on class = 'pg_proc'::regclass and p.oid = id
    left join pg_type t on class = 'pg_type'::regclass and t.oid = id left join pg_operator o on class = 'pg_operator'::regclass and o.oid = id
    left join pg_opclass c on class = 'pg_opclass'::regclass and c.oid = id
  where coalesce(relowner, proowner, typowner, oprowner, opcowner) is not null;

-- What is not captured, a line for each table and reason, without the ERP's data: everybody may read it. It calls no function of ours,
-- because readers run a view's functions with their own rights.
create view outboxd_capture.trouble as
  with recursive part as ( -- the tables of each document, with the number of triggers that each has
    select number, table_name as name, erp_table::oid as id, case when version < 4 then 0 else 2 end as triggers, true as is_document from outboxd_capture.installed
    union all
    -- By the catalog: to_regclass fails for a reader that has no right to use the schema.
    select number, format('%I.%I', names[1], names[2]), c.oid, 3, false
      from outboxd_capture.installed cross join lateral unnest(children) child cross join lateral parse_ident(child) names
      left join (pg_class c join pg_namespace s on s.oid = c.relnamespace) on s.nspname = names[1] and c.relname = names[2]
  ),
  relation as (
    select * from part
    union select r.number, r.name, c.oid, r.triggers, false from relation r join pg_inherits h on h.inhparent = r.id join pg_class c on c.oid = h.inhrelid
      where c.relkind in ('r', 'p')
  ),
  bearer as materialized ( -- the table that has the name by now
    select i.erp_table as of, b.oid from outboxd_capture.installed i
    join (pg_class b join pg_namespace s on s.oid = b.relnamespace) on array[s.nspname::text, b.relname] = parse_ident(i.table_name)
  ),
  uncovered as (
    select distinct i.table_name, case
        when c.oid is null then format('it was dropped; if it is there again, install it again, else remove(%L)', i.erp_table::oid)
        when i.version < 4 then 'it was installed by an earlier version: install it again'
        when bearer.oid is distinct from c.oid then format('it is %s now%s: install it again by this name', c.oid::regclass,
          case when bearer.oid is not null then ', and nothing captures the table that bears its name now' end)
        when r.id is null then format('there is no table %s any more: install it again', r.name)
        when r.id in (select id from part) and exists (select from pg_inherits where inhrelid = r.id)
          then format('%s has become a partition or a child of another table: install that one', r.name)
        when subscription is not null then format('rows that the subscription %I writes to %s', subscription, r.id::regclass)
        when owner is not null then format('code of %I runs with the rights of %I, of which it is not a member: install it again', owner, pg_get_userbyid(home.nspowner))
        when r.is_document and exists (select from pg_trigger where tgdeferrable and (tgrelid = i.outbox or tgrelid in (select inhrelid from pg_inherits where inhparent = i.outbox)))
          then format('a constraint of %s is deferrable, so it may fail at the COMMIT of the ERP', i.outbox_name)
        when r.is_document and exists (select from pg_rewrite join pg_class b on b.oid = ev_class where ev_class = i.outbox and ev_type = '3' and b.relkind <> 'v')
          then format('%s has a rule, which may keep rows out: drop it', i.outbox_name)
        when covered then null
        when r.id in (select id from part) then format('triggers of %s are gone or switched off: install it again', r.name)
        else format('rows written to %s: install it again', r.id::regclass)
      end as reason
    from outboxd_capture.installed i left join pg_class c on c.oid = i.erp_table join relation r on r.number = i.number
    join pg_namespace home on home.nspname = 'outboxd_capture'
    left join bearer on bearer.of = i.erp_table
    left join lateral (select pg_get_userbyid(owner) as owner from outboxd_capture.outbox_owner o where o.outbox = i.outbox and r.is_document
      and not pg_has_role(o.owner, home.nspowner, 'member') limit 1) strange on true
    -- A subscription's worker fires no triggers for each statement.
    left join lateral (select s.subname as subscription from pg_subscription_rel l join pg_subscription s on s.oid = l.srsubid where l.srrelid = r.id limit 1) subscribed on true
    cross join lateral (select count(*) >= r.triggers as covered from pg_trigger t join pg_proc p on p.oid = t.tgfoid
      where t.tgrelid = r.id and p.pronamespace = home.oid and starts_with(p.proname, format('document_%s_', i.number)) and t.tgenabled in ('O', 'A')) has
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
  where p.pronamespace = 'outboxd_capture'::regnamespace and t.tgrelid not in (select id from relation where id is not null);

do $$
begin
  perform outboxd_capture.replace_document_view();
  perform outboxd_capture.drop_unused_functions();
end $$;
revoke all on all functions in schema outboxd_capture from public;
grant usage on schema outboxd_capture to public;
grant select on outboxd_capture.trouble, outboxd_capture.captured to public;

commit;
