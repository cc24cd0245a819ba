-- Change capture for outboxd: triggers on tables of the ERP, which write one row into the outbox for each document that changed.
-- A document is a row of one table, with the rows of other tables that point at it: an order and its lines. docs/start/change-capture.md has
-- the statements that create the role, the arguments of `install`, and what is captured. This file changes no table of the ERP:
--
--   psql -1 -v ON_ERROR_STOP=1 -c 'set role outboxd_capture' -f install.sql
--   select outboxd_capture.install('public.sales_order', type => 'order', children => '{public.sales_line.order_id}');
--   select outboxd_capture.remove('public.sales_order');         -- remove.sql removes everything
--
-- The ERP's statement never fails because of a trigger. Changes that could not be captured are noted in outboxd_capture.error:
--
--   select * from outboxd_capture.trouble;                       -- what is noted, and what is not covered
--   select * from outboxd_capture.retry();                       -- captures the noted documents
--   select outboxd_capture.dismiss('public.sales_order');        -- deletes the notes of a table
--
-- The trigger functions run with the rights of the role that installs them. Only that role may execute them. They read only keys, by the
-- output functions of their types. They write only to an outbox whose owner is a member of that role, because an outbox can run code, too.

-- Other roles may have made functions and operators in `public` that fit better, so names mean Postgres's own in this file.
do $$
begin
  perform pg_catalog.set_config('outboxd_capture.search_path', pg_catalog.current_setting('search_path'), true),
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true), pg_catalog.set_config('lock_timeout', '5s', true);
end $$;

do $$
declare
  owner name := (select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'outboxd_capture');
begin
  if current_setting('search_path') <> 'pg_catalog, pg_temp' then
    raise exception 'This file must run in one transaction: psql --single-transaction (-1).';
  elsif (select rolsuper from pg_roles where rolname = current_user) then
    raise exception 'A superuser must not install change capture: its trigger functions run with the rights of the role that installs it.'
      using hint = E'Run these statements, and this file again in the same session:\n'
        '  create role outboxd_capture;                         -- unless it exists\n'
        '  create schema if not exists outboxd_capture authorization outboxd_capture;\n'
        '  set role outboxd_capture;';
  elsif owner <> current_user then
    raise exception 'The schema outboxd_capture belongs to %: run this file as that role.', owner;
  elsif owner is null then
    create schema outboxd_capture;
  end if;
  if to_regclass('outboxd_capture.installed') is null then
    create table outboxd_capture.installed (           -- what `install` was told
      number      int primary key,                     -- in the names of its functions, triggers and setting
      erp_table   regclass not null,
      table_name  text not null,                       -- as it was on that day
      type        text not null,
      key_column  name,                                -- the primary key
      children    text[],                              -- schema.table.column of each reference to the document
      key         name,
      payload     text[],
      condition   text,
      outbox      regclass not null,
      outbox_name text not null,                       -- as it was on that day
      document    text,                                -- in the rows of the outbox; a table that is renamed keeps it
      unique (erp_table, type)
    );
    -- Triggers add to this table, and read it only under READ COMMITTED. So no writer waits for another, and none fails if it is
    -- serializable.
    create table outboxd_capture.error (
      id          bigint generated always as identity primary key,
      number      int not null,
      table_name  text not null,
      document_id text,                                -- null: documents were changed, and it is not known which
      key         text,                                -- of its outbox row; null if document_id is null
      operation   text not null,
      sqlstate    text not null,
      message     text not null,
      noted_at    timestamptz not null default clock_timestamp()
    );
    create index on outboxd_capture.error (number, id);
  end if;
end $$;

create or replace function outboxd_capture.quoted(of regclass) returns text stable language sql
set search_path = pg_catalog, pg_temp set quote_all_identifiers = off as $$
  select format('%I.%I', nspname, relname) from pg_class c join pg_namespace s on s.oid = c.relnamespace where c.oid = $1
$$;

-- A table with its partitions, and with the tables that inherit from it.
create or replace function outboxd_capture.tree(of oid) returns setof oid stable language sql
set search_path = pg_catalog, pg_temp as $$
  with recursive tree as (select $1 as id union select inhrelid from tree join pg_inherits on inhparent = id) select id from tree
$$;

-- The kinds of columns; null if capture cannot read one. A domain counts as its base. Triggers do not see virtual columns.
create or replace view outboxd_capture.column_kind as
  select attrelid as relation, attname as name, case when base.typname in ('int2', 'int4', 'int8') then 'integer' when base.typname in ('text', 'varchar') then 'text'
      when base.typname = 'bpchar' then 'character' when base.typname = 'uuid' then 'uuid'
      when base.typname = 'numeric' then format_type(base.oid, case t.typtype when 'd' then t.typtypmod else atttypmod end) end as kind
  from pg_attribute join pg_type t on t.oid = atttypid join pg_type base on base.oid = case t.typtype when 'd' then t.typbasetype else t.oid end
  where attnum > 0 and not attisdropped and attgenerated <> 'v' and base.typnamespace = 'pg_catalog'::regnamespace;

create or replace function outboxd_capture.key_kind(of oid, column_name name) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select kind from outboxd_capture.column_kind where relation = $1 and name = $2
$$;

-- A column of the row r as text. `format` calls the output function of its type. A cast may be code of the type's owner, if the column
-- gets another type after the installation. A numeric without a scale may be 1 in one table and 1.00 in another: both are 1.
create or replace function outboxd_capture.value_sql(of oid, column_name name) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select format(case outboxd_capture.key_kind($1, $2) when 'character' then 'rtrim(%s)'
      when 'numeric' then $sql$regexp_replace(%s, '[.]0+$|([.][0-9]*[1-9])0+$', E'\\1')$sql$ else '%s' end, format('format(''%%s'', r.%I)', $2))
$$;

-- The tables that a document is made of, with the columns that point at it.
create or replace function outboxd_capture.parts(told outboxd_capture.installed)
returns table (id regclass, name text, is_document boolean, pointers name[]) stable language sql set search_path = pg_catalog, pg_temp as $$
  select to_regclass(name), name, bool_or(pointer is null), coalesce(array_agg(pointer) filter (where pointer is not null), '{}') from (
    select told.table_name as name, null::name as pointer
    union all select format('%I.%I', names[1], names[2]), names[3]::name from unnest(told.children) child, parse_ident(child) names
  ) part group by name order by bool_or(pointer is null) desc, name
$$;

-- Writes outbox rows for the documents in two arrays, ids and keys. An id of digits is a number in JSON.
create or replace function outboxd_capture.insert_sql(told outboxd_capture.installed, ids text, keys text) returns text stable language sql
set search_path = pg_catalog, pg_temp as $$
  select format('insert into %s (type, key, payload) select %L, coalesce(d.key, d.id),
        jsonb_build_object(''document'', %L::text, ''id'', %s) from unnest(%s, %s) d(id, key)', told.outbox_name, told.type, told.document,
    case when outboxd_capture.key_kind(told.erp_table, told.key_column) in ('text', 'character', 'uuid') then 'd.id' else 'd.id::jsonb' end, ids, keys)
$$;

-- The trigger function of one table and one operation.
--
-- A transaction writes one row for each document: the setting outboxd_capture.written_N lists the documents that it has written. A savepoint
-- that is rolled back takes its entries with it. The list has a bound. A document beyond that may be written again; the daemon leaves out
-- what it sent before.
--
-- The exception block is a subtransaction, so that the ERP's statement goes through; nothing outside of it can fail. A transaction waits
-- for a locked outbox once, for a second.
create or replace function outboxd_capture.function_sql(function_name text, told outboxd_capture.installed, part regclass, read_rows text)
returns text stable language sql set search_path = pg_catalog, pg_temp as $text$
  select format($function$
    create function %1$s() returns trigger language plpgsql security definer
    set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as %2$L$function$, function_name, format($body$
    declare
      seen text := coalesce(current_setting(%1$L, true), '');
      ids text[];
      keys text[];
      written bigint;
      why_state text;
      why text;
    begin
      select array_agg(id order by length(id), id), array_agg(key order by length(id), id) into ids, keys from (
        select distinct on (id) id, key from (%2$s) each(id, key) where strpos(seen, ',' || to_json(id) || ',') = 0) changed;
      if ids is null then
        return null;
      elsif format('%%L.%%L', tg_table_schema, tg_table_name) not in (%3$s) then
        raise exception sqlstate '42P01' using message = %4$L;
      elsif to_regclass(%5$L) is distinct from (select outbox from outboxd_capture.installed where number = %6$s) then
        raise exception sqlstate '42P01' using message = %7$L;
      elsif current_setting('outboxd_capture.locked', true) <> '' then
        perform set_config('lock_timeout', '1ms', true);
      end if;
      %8$s;
      get diagnostics written = row_count;
      if written < cardinality(ids) then
        raise exception sqlstate '55000' using message = 'a trigger or a rule of the outbox keeps rows out';
      end if;
      if length(seen) < 16000 then
        perform set_config(%1$L, seen || (select string_agg(',' || to_json(id) || ',', '') from unnest(ids[1:500]) id), true);
      end if;
      return null;
    exception when others or assert_failure then
      get stacked diagnostics why_state = returned_sqlstate, why = message_text;
      if current_setting('outboxd_capture.locked', true) <> '' then
        perform set_config('lock_timeout', '1ms', true);
      end if;
      if why_state = '55P03' then
        perform set_config('outboxd_capture.locked', 'on', true);
      end if;
      begin
        perform outboxd_capture.note(%6$s, %9$L, ids, tg_op, why_state, why, keys);
      exception when others or assert_failure then
        perform set_config('outboxd_capture.locked', 'on', true);
        -- Only to the server's log, and without a name: a client whose encoding lacks a letter of it would make the statement fail.
        raise log 'outboxd_capture: a change of the table %% was not captured (%%) and could not be noted (%%)', tg_relid, why_state, sqlstate;
      end;
      return null;
    end $body$,
    'outboxd_capture.written_' || told.number, read_rows,
    (select string_agg(format('%L', format('%L.%L', nspname, relname)), ', ') from pg_class c join pg_namespace s on s.oid = relnamespace
      where c.oid in (select outboxd_capture.tree(part))),
    format('%s was renamed: install %s again', outboxd_capture.quoted(part), told.table_name),
    told.outbox_name, told.number, told.outbox_name || ' was replaced: install it again',
    outboxd_capture.insert_sql(told, 'ids', 'keys'), told.table_name))
$text$;

-- Writes outbox rows for documents, without a trigger.
create or replace function outboxd_capture.write(told outboxd_capture.installed, ids text[], keys text[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $write$
declare
  written bigint;
begin
  if to_regclass(told.outbox_name) is distinct from told.outbox then
    raise exception '% was replaced: install it again', told.outbox_name;
  end if;
  execute outboxd_capture.insert_sql(told, '$1', '$2') using ids, keys;
  get diagnostics written = row_count;
  if written < cardinality(ids) then
    raise exception 'a trigger or a rule of the outbox keeps rows out';
  end if;
end $write$;

-- Refuses a role with more rights than capture needs, or with fewer, and prints the statements that make the right one.
create or replace function outboxd_capture.refuse_role(told outboxd_capture.installed) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $refuse$
declare
  me pg_roles := (select r from pg_roles r where rolname = current_user);
  role name := current_user;
  wrong text;
  statements text;
begin
  select string_agg(why, ', ') into wrong from (
    select why from (values (me.rolsuper, 'is a superuser'), (me.rolcreaterole, 'may create roles'), (me.rolcreatedb, 'may create databases'),
      (me.rolreplication, 'may replicate'), (me.rolbypassrls, 'bypasses row-level security')) each(so, why) where so
    union all select format('is a member of %I', rolname) from pg_auth_members m join pg_roles r on r.oid = m.roleid where m.member = me.oid
    union all select 'owns the database' from pg_database where datname = current_database() and datdba = me.oid
    union all (select format('owns %s', outboxd_capture.quoted(c.oid)) from pg_class c
      where relowner = me.oid and relkind in ('r', 'p', 'v', 'm', 'f') and relpersistence <> 't' and relnamespace <> 'outboxd_capture'::regnamespace
        and c.oid not in (select outboxd_capture.tree(id) from outboxd_capture.parts(told)) and c.oid <> told.outbox limit 1)
  ) reason;
  if wrong is not null then
    wrong := format('%I %s: the role that installs change capture must have few rights, because its trigger functions run with them.', role, wrong);
    role := 'outboxd_capture';
  end if;
  with relation as (select tree as id from outboxd_capture.parts(told) p, outboxd_capture.tree(p.id) tree),
  needed(n, statement, is_there) as (
    select 0, format('create role %I;                         -- unless it exists', role), wrong is null
    union select 1, format('grant %I to %I;', role, rolname), pg_has_role(r.oid, current_user, 'member')
      from outboxd_capture.outbox_owner o join pg_roles r on r.oid = o.owner where o.outbox = told.outbox and not rolsuper
    union select 2, format('grant usage on schema %I to %I;', nspname, role), has_schema_privilege(s.oid, 'usage')
      from pg_class c join pg_namespace s on s.oid = relnamespace where c.oid = told.outbox or c.oid in (select id from relation)
    union select 3, format('grant trigger on %s to %I;', outboxd_capture.quoted(id), role), has_table_privilege(id, 'trigger') from relation
    union select 4, format('grant insert on %s to %I;', told.outbox_name, role), has_any_column_privilege(told.outbox, 'insert')
    union select 5, format('set role %I;', role), wrong is null
  )
  select string_agg('  ' || statement, E'\n' order by n, statement) into statements from needed where wrong is not null or not is_there;
  if statements is not null then
    raise exception '%', coalesce(wrong, format('%I lacks rights that change capture of %s needs.', role, told.table_name))
      using errcode = '42501', hint = E'Run these statements, then install again:\n' || statements;
  end if;
end $refuse$;

-- Refuses in words what cannot work.
create or replace function outboxd_capture.refuse_settings(told outboxd_capture.installed, search_path text) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $refuse$
declare
  kind text := outboxd_capture.key_kind(told.erp_table, told.key_column);
  part record;
  other text;
  its_name text;
begin
  if kind is null then
    raise exception '% has no primary key of one column that is an integer, a numeric, a uuid or a text', told.table_name;
  end if;
  for part in select * from outboxd_capture.parts(told) loop
    if not exists (select from pg_class where oid = part.id and relkind in ('r', 'p')) then
      raise exception 'children: there is no table %', part.name using hint = 'Write schema.table.column.';
    end if;
    select outboxd_capture.quoted(inhparent) into other from pg_inherits where inhrelid = part.id limit 1;
    if found then
      raise exception '% is a part of %: name that table', part.name, other;
    end if;
    -- A text with blanks at its end equals a character, and a numeric one of another scale, but their texts are two documents.
    select pointer into other from unnest(part.pointers) pointer where outboxd_capture.key_kind(part.id, pointer) is distinct from kind limit 1;
    if found then
      raise exception 'children: % has no column % of the type of %.%', part.name, other, told.table_name, told.key_column
        using hint = format('If the column is there, give it that type: alter table %s alter %I type %s;', part.name, other,
          (select format_type(atttypid, atttypmod) from pg_attribute where attrelid = told.erp_table and attname = told.key_column));
    end if;
    select format('%s.%I', part.name, attname) into other from pg_attribute join pg_collation c on c.oid = attcollation
      where attrelid = part.id and not c.collisdeterministic
        and attname = any (array_append(part.pointers, case when part.is_document then told.key_column end)) limit 1;
    if found then
      raise exception '% has a collation by which different texts are equal, so one document would count as several', other;
    end if;
  end loop;
  -- A renamed table is removed by its name of now, a dropped one by its number.
  select table_name, coalesce(outboxd_capture.quoted(i.erp_table), i.erp_table::oid::text) into other, its_name
    from outboxd_capture.installed i where i.type = told.type and i.outbox = told.outbox and i.number <> told.number limit 1;
  if found then
    raise exception 'the type % is that of % already, and a mapping file reads one table', told.type, other
      using hint = format('Give %s a type of its own, or run: select outboxd_capture.remove(%L);', told.table_name, its_name);
  elsif told.key is not null and cardinality(told.children) > 0 then
    raise exception 'key: a document with children is sent in the order of its own changes; leave key out';
  elsif told.key is not null and outboxd_capture.key_kind(told.erp_table, told.key) is null then
    raise exception 'key: % has no column % that is an integer, a numeric, a uuid or a text', told.table_name, told.key;
  elsif cardinality(told.payload) % 2 = 1 then
    raise exception 'payload must be pairs: name in the payload, column';
  end if;
  -- PREPARE reads payload and condition and runs nothing of them, because the condition's functions may be another role's.
  begin
    perform set_config('search_path', search_path, true);
    execute pg_catalog.format(E'prepare outboxd_capture_content as select %s from %s n where (%s\n)', (
      select pg_catalog.string_agg(pg_catalog.format('n.%I as %I', told.payload[i + 1], told.payload[i]), ', ')
        from pg_catalog.generate_series(1, pg_catalog.cardinality(told.payload), 2) i), told.table_name, coalesce(told.condition, 'true'));
    deallocate outboxd_capture_content;
    perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  exception when others then
    raise exception 'payload or condition: %', sqlerrm;
  end;
end $refuse$;

-- Drops the trigger functions of one installation, and its triggers with them: only the owner of a table may drop a trigger itself.
create or replace function outboxd_capture.drop_functions(number int) returns void language plpgsql
set search_path = pg_catalog, pg_temp set client_min_messages = warning as $drop$
declare
  its regprocedure;
begin
  for its in select oid from pg_proc where pronamespace = 'outboxd_capture'::regnamespace and starts_with(proname, format('document_%s_', $1)) loop
    execute format('drop function %s cascade', its);
  end loop;
end $drop$;

create or replace function outboxd_capture.install(
  erp_table regclass,
  type      text,
  key       name     default null,
  payload   text[]   default null,
  condition text     default null,
  outbox    regclass default 'outbox'::text::regclass, -- by the search path of the role that calls
  children  text[]   default '{}',
  search_path text   default current_setting('search_path') -- in which names in the condition are looked up
) returns void language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $install$
#variable_conflict use_column
declare
  row_name text := outboxd_capture.quoted(erp_table);
  told outboxd_capture.installed;
  part record;
  each text;
  operation text;
  sources text[];
  function_name text;
  formers int[];
  document_name text;
begin
  with former as (
    delete from outboxd_capture.installed i where type = install.type and (erp_table = install.erp_table
      or table_name = row_name and outboxd_capture.quoted(i.erp_table) is distinct from row_name) -- dropped, or swapped for this table
      returning number, document
  )
  select array_agg(number order by number), coalesce(min(document), row_name) into formers, document_name from former;
  insert into outboxd_capture.installed
    select coalesce(formers[1], (select coalesce(max(number), 0) + 1 from outboxd_capture.installed)), c.oid, row_name, install.type,
      (select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = indkey[0]
        where indrelid = c.oid and indisprimary and indnkeyatts = 1),
      (select coalesce(array_agg(format('%I.%I.%I', coalesce(names[cardinality(names) - 2], nspname), names[cardinality(names) - 1], names[cardinality(names)])), '{}')
        from unnest(install.children) child cross join lateral parse_ident(child) names),
      install.key, install.payload, install.condition, install.outbox, outboxd_capture.quoted(install.outbox), document_name
    from pg_class c join pg_namespace s on s.oid = relnamespace where c.oid = install.erp_table
    returning * into told;
  perform outboxd_capture.refuse_role(told), outboxd_capture.refuse_settings(told, install.search_path);
  perform outboxd_capture.drop_functions(number) from unnest(formers || told.number) number;

  for part in select row_number() over () as position, * from outboxd_capture.parts(told) loop
    for operation, sources in values ('insert', '{new}'::text[]), ('update', '{new,old}'), ('delete', '{old}') loop
      -- A deleted document is not captured, nor its id before an update.
      select string_agg(format('select %s, %s from %s_rows r where r.%I is not null', outboxd_capture.value_sql(part.id, name),
          case when told.key is null then 'null' else format('nullif(%s, '''')', outboxd_capture.value_sql(part.id, told.key)) end, source, name), ' union all ')
        into each from unnest(sources) source,
          unnest(part.pointers || case when part.is_document and source = 'new' then array[told.key_column] else '{}' end) name;
      continue when each is null;
      -- No name of the ERP in it, for the same reason as in the server's log.
      function_name := format('outboxd_capture.document_%s_%s_%s', told.number, part.position, operation);
      execute outboxd_capture.function_sql(function_name, told, part.id, each);
      execute format('revoke all on function %s() from public', function_name);
      select string_agg(format('%s table as %1$s_rows', source), ' ') into each from unnest(sources) source where position(source || '_rows' in each) > 0;
      -- A statement's triggers are those of the table that it names, so each partition has its own.
      execute (select string_agg(format('create trigger outboxd_capture_%1$s_%2$s after %1$s on %3$s referencing %4$s for each statement execute function %5$s();',
          operation, told.number, outboxd_capture.quoted(c.oid), each, function_name), ' ')
        from outboxd_capture.tree(part.id) tree join pg_class c on c.oid = tree where relkind in ('r', 'p'));
    end loop;
  end loop;
  -- The table may have another type, which is installed next.
  select reason into each from outboxd_capture.trouble t where t.table_name = told.table_name and notes = 0 and not (reason like '%install it again%'
    and exists (select from outboxd_capture.installed i where i.erp_table = told.erp_table and i.number <> told.number));
  if found then
    raise exception '%: %', told.table_name, each;
  end if;
  -- Tried on the outbox, and taken back.
  begin
    perform outboxd_capture.write(told, '{0}', '{0}');
    raise exception sqlstate 'OB001';
  exception
    when sqlstate 'OB001' then null;
    when others or assert_failure then
      raise exception '% does not take rows of change capture: % (%)', told.outbox_name, sqlerrm, sqlstate;
  end;
  perform outboxd_capture.replace_document_view();
end $install$;

-- Captures noted documents. The daemon reads later what is sent.
create or replace function outboxd_capture.retry(at_most int default 1000)
returns table (erp_table text, captured int, failed int, reason text) language plpgsql set search_path = pg_catalog, pg_temp as $retry$
declare
  told outboxd_capture.installed;
  notes bigint[];
  ids text[];
  keys text[];
begin
  if (select rolsuper from pg_roles where rolname = current_user) then
    raise exception 'retry writes to the outbox, whose triggers may be code of its owner: not as a superuser.'
      using hint = format('set role %I;', (select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'outboxd_capture'));
  end if;
  for told in select * from outboxd_capture.installed order by table_name, type loop
    select array_agg(id), array_agg(document_id order by id) filter (where is_last), array_agg(key order by id) filter (where is_last)
      into notes, ids, keys from (
      select *, id = max(id) over (partition by document_id) as is_last from (
        select * from outboxd_capture.error where number = told.number and document_id is not null order by id limit at_most) first) noted;
    continue when ids is null;
    erp_table := told.table_name; captured := 0; failed := 0; reason := null;
    begin
      perform outboxd_capture.write(told, ids, keys);
      delete from outboxd_capture.error where id = any (notes);
      captured := cardinality(ids);
    exception when others or assert_failure then
      failed := cardinality(ids);
      reason := sqlerrm;
    end;
    return next;
  end loop;
  return query select i.table_name, 0, null::int, format('ids of changed documents are unknown: update these documents, then: select outboxd_capture.dismiss(%L)',
      coalesce(outboxd_capture.quoted(i.erp_table), i.erp_table::oid::text))
    from outboxd_capture.installed i where exists (select from outboxd_capture.error e where e.number = i.number and document_id is null);
end $retry$;

create or replace function outboxd_capture.dismiss(of regclass) returns bigint language sql
set search_path = pg_catalog, pg_temp as $$
  with gone as (delete from outboxd_capture.error where number in (select number from outboxd_capture.installed where erp_table = $1) returning 1)
  select count(*) from gone
$$;

-- Removes capture from a table, or one type of it.
create or replace function outboxd_capture.remove(erp_table regclass, type text default null) returns void language plpgsql
set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $remove$
declare
  its int;
begin
  for its in delete from outboxd_capture.installed i where i.erp_table = $1 and i.type = coalesce($2, i.type) returning number loop
    perform outboxd_capture.drop_functions(its);
    delete from outboxd_capture.error where number = its;
  end loop;
  if not found then
    raise warning '% is not captured: nothing was removed', coalesce(outboxd_capture.quoted($1), $1::text);
  end if;
  perform outboxd_capture.replace_document_view();
end $remove$;

-- outboxd_capture.document: the outcome of each document's last change. A row that ended because the document was the same as before does
-- not count. The view reads the outboxes with the rights of the role that asks.
create or replace function outboxd_capture.replace_document_view() returns void language plpgsql
set search_path = pg_catalog, pg_temp as $view$
declare
  outboxes regclass[] := (select array_agg(distinct outbox) from outboxd_capture.installed);
  counts constant text := $$payload ? 'document' and not (status = 'discarded' and error is not null and starts_with(error, 'unchanged since '))$$;
begin
  if outboxes is null then
    return;
  end if;
  execute 'create or replace view outboxd_capture.document with (security_invoker = true) as ' || (select string_agg(format($$
      select payload ->> 'document' as table_name, payload ->> 'id' as id, status as state, transaction_id, error, updated_at, id as outbox_id, type
      from %1$s r where %2$s and not exists (select from %1$s later where payload ->> 'document' = r.payload ->> 'document'
        and payload ->> 'id' = r.payload ->> 'id' and id > r.id and type = r.type and %2$s)$$, outboxd_capture.quoted(outbox), counts), ' union all ')
    from unnest(outboxes) outbox);
  grant select on outboxd_capture.document to public;
exception when others then
  raise notice 'The view outboxd_capture.document needs the columns of an outbox that outboxd migrate --outbox made: %', sqlerrm;
end $view$;

-- For the daemon, which reads the content of a document and asks the condition.
--
-- The daemon ends documents that it does not find as deleted. If it cannot find them, the condition here is a column that does not exist. It
-- fails for all rows, so the daemon holds the type, and its message quotes the column. Row-level security is that of the view's reader.
create or replace view outboxd_capture.captured as
  select document, erp_table::oid as erp_table, key_column::text, type, children, case
      when exists (select from pg_class c join pg_namespace s on s.oid = c.relnamespace
        where array[s.nspname::text, c.relname] = parse_ident(table_name) and c.oid <> erp_table and relkind in ('r', 'p'))
        then '"the table was swapped: see outboxd_capture.trouble"'
      when exists (select from pg_class c join pg_namespace s on s.oid = c.relnamespace
        where relrowsecurity and row_security_active(c.oid) and has_any_column_privilege(c.oid, 'select')
          and (c.oid = erp_table or array[s.nspname::text, c.relname] in (
            select names[1:2] from unnest(children) child cross join lateral parse_ident(child) names))
          and not exists (select from pg_policy cross join lateral unnest(polroles) role
            where polrelid = c.oid and polpermissive and polcmd in ('r', '*') and (role = 0 or pg_has_role(role, 'usage'))))
        then '"row-level security shows this role no row"'
      else condition
    end as condition, payload, outbox_name as outbox
  from outboxd_capture.installed;

-- The roles whose code runs if a row is written to an outbox: the owners of the table, and of the functions, types and operators that its
-- triggers, defaults, constraints, indexes, policies and rules use.
create or replace view outboxd_capture.outbox_owner as
  with recursive used as (
    select distinct outbox::oid as root, 'pg_class'::regclass::oid as class, outbox::oid as id from outboxd_capture.installed
    union select root, next.* from used cross join lateral (
      select 'pg_class'::regclass::oid, inhrelid from pg_inherits where inhparent = id and class = 'pg_class'::regclass
      union all select refclassid, refobjid from pg_depend where classid = class and objid = id and refobjid >= 16384
        and refclassid in ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass)
      union all select classid, objid from pg_depend where refclassid = class and refobjid = id and deptype in ('a', 'i')) next -- its parts
  )
  select distinct root as outbox, owner from used join (
    select 'pg_class'::regclass::oid as class, oid as id, relowner as owner from pg_class
    union all select 'pg_proc'::regclass, oid, proowner from pg_proc union all select 'pg_type'::regclass, oid, typowner from pg_type
    union all select 'pg_operator'::regclass, oid, oprowner from pg_operator union all select 'pg_opclass'::regclass, oid, opcowner from pg_opclass
  ) object using (class, id);

-- What is not captured, a line for each table and reason, without the ERP's data. It calls no function of ours, because readers run a
-- view's functions with their own rights.
create or replace view outboxd_capture.trouble as
  with recursive part as ( -- the tables of each document, with the number of triggers that each has
    select number, table_name as name, erp_table::oid as id, 2 as triggers, true as is_document, key_column as pointer from outboxd_capture.installed
    union all
    -- By the catalog: to_regclass fails for a reader that has no right to use the schema.
    select number, format('%I.%I', names[1], names[2]), c.oid, 3, false, names[3]::name
      from outboxd_capture.installed cross join lateral unnest(children) child cross join lateral parse_ident(child) names
      left join (pg_class c join pg_namespace s on s.oid = c.relnamespace) on s.nspname = names[1] and c.relname = names[2]
  ),
  relation as (
    select * from part
    union select r.number, r.name, c.oid, r.triggers, false, r.pointer from relation r join pg_inherits h on h.inhparent = r.id join pg_class c on c.oid = h.inhrelid
      where c.relkind in ('r', 'p')
  ),
  uncovered as (
    select distinct i.table_name, case
        when c.oid is null then format('it was dropped; if it is there again, install it again, else remove(%L)', i.erp_table::oid)
        when successor.oid is distinct from c.oid then format('it is %s now%s: install it again by this name', c.oid::regclass,
          case when successor.oid is not null then ', and nothing captures the table that bears its name now' end)
        when r.id is null then format('there is no table %s any more: install it again', r.name)
        when r.id in (select id from part) and exists (select from pg_inherits where inhrelid = r.id)
          then format('%s has become a partition or a child of another table: install that one', r.name)
        when exists (select from pg_attribute join pg_collation k on k.oid = attcollation
            where attrelid = r.id and attname = r.pointer and not k.collisdeterministic)
          then format('%s.%I has a collation by which different texts are equal, so one document counts as several: change it', r.name, r.pointer)
        when reference.kind <> document.kind
          then format('%s.%I has another type than %s.%I, so one document counts as several: give it that type', r.name, r.pointer, i.table_name, i.key_column)
        -- Functions for these kinds leave blanks or zeros out, so they read no id as it is.
        when r.is_document and document.kind in ('character', 'numeric') and exists (select from pg_proc
            where pronamespace = home.oid and starts_with(proname, format('document_%s_', i.number)) and strpos(prosrc, 'select format(') > 0)
          then format('%s.%I had another type when it was installed, so one document counts as several: install it again',
            r.name, r.pointer)
        -- A subscription's worker fires no triggers for each statement.
        when subscription is not null then format('rows that the subscription %I writes to %s', subscription, r.id::regclass)
        when stranger is not null then format('code of %I runs with the rights of %I, of which it is not a member: install it again', stranger, pg_get_userbyid(home.nspowner))
        when exists (select from pg_trigger where tgdeferrable and (tgrelid = i.outbox or tgrelid in (select inhrelid from pg_inherits where inhparent = i.outbox)))
          then format('a constraint of %s is deferrable, so it may fail at the COMMIT of the ERP', i.outbox_name)
        when exists (select from pg_rewrite join pg_class b on b.oid = ev_class where ev_class = i.outbox and ev_type = '3' and b.relkind <> 'v')
          then format('%s has a rule, which may keep rows out: drop it', i.outbox_name)
        when r.triggers <= (select count(*) from pg_trigger t join pg_proc p on p.oid = t.tgfoid where t.tgrelid = r.id and t.tgenabled in ('O', 'A')
          and p.pronamespace = home.oid and starts_with(p.proname, format('document_%s_', i.number))) then null
        when r.id in (select id from part) then format('triggers of %s are gone or switched off: install it again', r.name)
        else format('rows written to %s: install it again', r.id::regclass)
      end as reason
    from outboxd_capture.installed i left join pg_class c on c.oid = i.erp_table join relation r on r.number = i.number
    join pg_namespace home on home.nspname = 'outboxd_capture'
    left join outboxd_capture.column_kind reference on reference.relation = r.id and reference.name = r.pointer
    left join outboxd_capture.column_kind document on document.relation = i.erp_table and document.name = i.key_column
    left join (pg_class successor join pg_namespace s on s.oid = successor.relnamespace) on array[s.nspname::text, successor.relname] = parse_ident(i.table_name)
    left join lateral (select pg_get_userbyid(owner) as stranger from outboxd_capture.outbox_owner o
      where o.outbox = i.outbox and not pg_has_role(o.owner, home.nspowner, 'member') limit 1) strange on true
    left join lateral (select s.subname as subscription from pg_subscription_rel l join pg_subscription s on s.oid = l.srsubid where l.srrelid = r.id limit 1) subscribed on true
  )
  select coalesce(i.table_name, e.table_name) as table_name, count(*) as notes,
    count(*) filter (where document_id is null) > 0 as has_unknown, min(noted_at) as since,
    -- The messages of these classes name columns, tables and locks; others quote values.
    format('%s%s', max(sqlstate), ': ' || max(message) filter (where sqlstate ~ '^(0A|3F|40|42|53|54|55)')) as reason
  from outboxd_capture.error e left join outboxd_capture.installed i using (number)
  group by 1
  union all
  select table_name, 0, false, null, reason from uncovered where reason is not null;

-- Notes documents; only that some were changed, if they are too many or unknown, or if there are 100 MB of notes. At 200 MB one such
-- note suffices; one that `dismiss` is deleting does not count. Stricter isolation levels cannot look, and end at 300 MB.
create or replace function outboxd_capture.note(number int, table_name text, ids text[], operation text, why_state text, why text, keys text[])
returns void language sql set search_path = pg_catalog, pg_temp as $$
  insert into outboxd_capture.error (number, table_name, document_id, key, operation, sqlstate, message)
    select $1, $2, id, coalesce(key, id), $4, $5, left($6, 1000)
    from pg_relation_size('outboxd_capture.error') size cross join lateral (select cardinality(ids) <= 100000 and size < 100000000) room(is_enough),
      unnest(case when is_enough then ids else array[null] end, case when is_enough then keys end) each(id, key)
    where case when size < 200000000 then true
      when current_setting('transaction_isolation') in ('repeatable read', 'serializable') then size < 300000000
      else not exists (
        select from outboxd_capture.error e where e.number = $1 and e.document_id is null limit 1 for key share skip locked)
    end
$$;

do $$
begin
  revoke all on all functions in schema outboxd_capture from public;
  grant usage on schema outboxd_capture to public;
  grant select on outboxd_capture.trouble, outboxd_capture.captured to public;
  perform set_config('search_path', current_setting('outboxd_capture.search_path'), true);
end $$;
