import type pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readChangeCaptureFaults, toChangeCaptureProblems } from '../../../src/outbox/changeCaptureFaults.ts'
import { asInstaller, captureFile, createRole, installCapture } from '../../support/changeCapture.ts'
import { createDatabase } from '../../support/database.ts'

/** Trigger functions of change capture run with the rights of their installer; code of other roles must not. */

const casts = (type: string, ...to: string[]) =>
  to
    .map(
      (target) =>
        `create cast (${type} as ${target.split(' ')[0]}) with function evil_${target.split(' ')[0]}(${type}) ${target.includes('implicit') ? 'as implicit' : ''};`,
    )
    .join('')
const letters = `create type bad as enum ('a', 'b');`
const functions = (type: string) => `
  create function evil_json(x ${type}) returns json language plpgsql as $$begin perform public.evil(''); return '"x"'; end$$;
  create function evil_text(x ${type}) returns text language plpgsql as $$begin perform public.evil(''); return 'a'; end$$;
  create function evil_equal(x ${type}, y ${type}) returns boolean language plpgsql as $$begin return public.evil(''); end$$;`

describe('code of the owner of a column’s type does not run with the installer’s rights', () => {
  test.each([
    ['a cast to json', letters + functions('bad') + casts('bad', 'json'), 'bad', 'a'],
    ['a cast to text', letters + functions('bad') + casts('bad', 'text'), 'bad', 'a'],
    ['implicit casts', letters + functions('bad') + casts('bad', 'json implicit', 'text implicit'), 'bad', 'a'],
    [
      'operators',
      `${letters}${functions('bad')}create operator = (leftarg = bad, rightarg = bad, function = evil_equal);
      create operator <> (leftarg = bad, rightarg = bad, function = evil_equal)`,
      'bad',
      'a',
    ],
    ['a cast of an array’s elements', letters + functions('bad') + casts('bad', 'json', 'text'), 'bad[]', '{a}'],
    [
      'a cast of a composite’s attribute',
      `${letters}${functions('bad')}${casts('bad', 'json', 'text')} create type pair as (one bad)`,
      'pair',
      '(a)',
    ],
    [
      'casts of a composite',
      `create type bad as (one text);${functions('bad')}${casts('bad', 'json', 'text')}`,
      'bad',
      '(a)',
    ],
    [
      'casts of the base type of a domain',
      `${letters}${functions('bad')}${casts('bad', 'json', 'text implicit')} create domain of_bad as bad`,
      'of_bad',
      'a',
    ],
    [
      'casts of an array that is a domain’s base type',
      `${letters}${functions('bad[]')}create cast (bad[] as text) with function evil_text(bad[]) as implicit;
      create function evil_texts(x bad[]) returns text[] language plpgsql as $$begin perform public.evil(''); return '{a}'; end$$;
      create cast (bad[] as text[]) with function evil_texts(bad[]) as implicit; create domain of_bad as bad[]`,
      'of_bad',
      '{a}',
    ],
    ['a domain’s CHECK', `create domain bad as text check (public.evil(value))`, 'bad', 'a'],
    [
      'casts of a range',
      `create type bad as range (subtype = text);${functions('bad')}${casts('bad', 'json', 'text implicit')}`,
      'bad',
      '[a,b]',
    ],
  ])('%s', async (_, make, type, value) => {
    const { pool, ran } = await setup()
    await pool.query(`set role mallory; ${make}; reset role`)
    const isDomainOfText = make.includes('domain bad as text')
    await pool.query(`create table item (id text primary key, note ${type}); create table part (id int primary key, item text);
      create table other (id ${type} primary key)`)
    // The trigger does not read these columns, and the condition would run such code if install ran it.
    await asInstaller(
      pool,
      `select outboxd_capture.install('item', 'data', children => '{part.item}', payload => '{note, note}',
        condition => $$n.note is not null and n.note::text <> 'zzz'$$)`,
    )
    await pool.query(
      `insert into item values ('1', '${value}'); update item set note = note; insert into part values (1, '1')`,
    )
    expect((await pool.query(`select key from outbox`)).rows).toEqual([{ key: '1' }])
    // A key of such a type: refused, or read as its base.
    const installed = asInstaller(pool, `select outboxd_capture.install('other', 'other')`)
    if (isDomainOfText) await installed
    else await expect(installed).rejects.toThrow('public.other has no primary key of one column that is')
    await pool.query(`insert into other values ('${value}')`)
    // Keys that get such a type after the installation are read by its output function.
    await pool.query(`delete from part; delete from item; truncate outbox; alter table item alter id type ${type} using '${value}';
      alter table part alter item type ${type} using '${value}'`)
    await pool.query(
      `insert into item values ('${value}', '${value}'); update item set note = null; insert into part values (1, '${value}'); delete from part`,
    )
    const { rows } = await pool.query(`select payload ->> 'id' as id from outbox`)
    expect(rows).toEqual([{ id: value }])
    expect(ran).not.toContain('ran as outboxd_capture')
  })

  test('documents are noted if their numeric key later gets such a type', async () => {
    const { pool, ran } = await setup()
    await pool.query(`set role mallory; create type bad as enum ('a', 'b');
      create function evil_number(x bad) returns numeric language plpgsql immutable as $$begin perform public.evil(''); return 1; end$$;
      create cast (bad as numeric) with function evil_number(bad) as implicit; reset role;
      create table item (id int primary key, amount int); insert into item values (1, 1)`)
    await asInstaller(pool, `select outboxd_capture.install('item', 'data')`)
    await pool.query(`update item set amount = 2; alter table item alter id type bad using 'a'`)
    await pool.query(`update item set amount = 3`)
    expect((await pool.query('select document_id, sqlstate from outboxd_capture.error')).rows).toEqual([
      { document_id: 'a', sqlstate: '22P02' },
    ])
    expect(ran).not.toContain('ran as outboxd_capture')
  })
})

test('a role without rights can make no trigger with our functions, and such a trigger captures nothing', async () => {
  const { pool } = await setup()
  await pool.query(`create table item (id int primary key, amount int)`)
  await asInstaller(pool, `select outboxd_capture.install('item', 'data')`)
  const { rows } = await pool.query<{ f: string }>(
    `select distinct tgfoid::regproc::text as f from pg_trigger where tgrelid = 'item'::regclass`,
  )
  const attack = `create temp table mine (id int primary key, amount int);
    create trigger mine after insert on mine referencing new table as new_rows for each statement execute function ${rows[0]?.f}();
    insert into mine values (1, 666)`
  await expect(pool.query(`begin; set local role mallory; ${attack}`)).rejects.toThrow('permission denied for function')
  await pool.query('rollback')
  await pool.query(
    `grant execute on function ${rows[0]?.f}() to mallory; begin; set local role mallory; ${attack}; commit`,
  )
  expect((await pool.query('select from outbox')).rowCount).toBe(0)
})

test('an outbox that another role put in place of ours gets no row, and its triggers do not run for us', async () => {
  const { pool, ran } = await setup()
  await pool.query('create table item (id int primary key, amount int)')
  await asInstaller(pool, `select outboxd_capture.install('item', 'data')`)
  await pool.query(`alter table outbox rename to away; set role mallory;
    create table outbox (type text, key text, payload jsonb default to_jsonb(public.evil(''))); grant insert on outbox to public;
    create function bad() returns trigger language plpgsql as $$begin perform public.evil(''); return new; end$$;
    create trigger bad before insert on outbox for each row execute function bad(); reset role`)
  await pool.query('insert into item values (1, 1)')
  expect((await pool.query('select sqlstate, message from outboxd_capture.error')).rows).toEqual([
    { sqlstate: '42P01', message: 'public.outbox was replaced: install it again' },
  ])
  const retried = await asInstaller(pool, 'select * from outboxd_capture.retry()')
  expect(retried.rows).toMatchObject([{ captured: 0, failed: 1 }])
  expect(ran).not.toContain('ran as outboxd_capture')
})

test('policies, constraints and indexes of a table do not run with the installer’s rights', async () => {
  const { pool, ran } = await setup()
  await pool.query(`create function sure(x text) returns boolean language plpgsql immutable as $$begin return public.evil(x); end$$;
    create table item (id int primary key, amount int, check (public.sure('check')));
    create index on item ((public.sure('index'))); create index on item (amount) where public.sure('predicate');
    alter table item enable row level security; alter table item force row level security;
    create policy shown on item using (public.sure('policy')); alter table item owner to mallory`)
  await asInstaller(pool, `select outboxd_capture.install('item', 'data', condition => 'amount > 0')`)
  await pool.query('alter table outbox rename to away; insert into item values (1, 1); update item set amount = 2')
  await pool.query('alter table away rename to outbox')
  await asInstaller(pool, 'select * from outboxd_capture.retry()')
  expect((await pool.query('select key from outbox')).rows).toEqual([{ key: '1' }])
  expect(ran).toContain('ran as postgres')
  expect(ran).not.toContain('ran as outboxd_capture')
})

test.each<[string, string, RegExp?]>([
  ['a superuser', 'alter role installer superuser'],
  ['a role that may create roles', 'alter role installer createrole'],
  ['a role that may create databases', 'alter role installer createdb'],
  ['a role that may replicate', 'alter role installer replication'],
  ['a role that bypasses row-level security', 'alter role installer bypassrls'],
  ['a member of another role', 'grant pg_read_all_data to installer'],
  ['the owner of another table', 'create table other (); alter table other owner to installer'],
  ['a role without rights on the table', 'revoke all on item from installer', /grant trigger on public\.item to/],
  ['a role without rights on the outbox', 'revoke all on outbox from installer', /grant insert on public\.outbox to/],
  ['a role that the outbox’s owner does not belong to', 'alter table outbox owner to mallory', /grant \w+ to mallory;/],
  [
    'a role that the owner of a trigger of the outbox does not belong to',
    'alter function outboxd_wake() owner to mallory',
    /grant \w+ to mallory;/,
  ],
  ...Object.entries({
    'a default': 'alter table outbox alter payload set default to_jsonb(public.theirs(null))',
    'a CHECK': 'alter table outbox add check (public.theirs(key))',
    'a CHECK of a domain':
      'create domain ours as text check (public.theirs(value)); alter table outbox alter key type ours',
    'an index': 'create index on outbox ((public.theirs(key)))',
    'a policy':
      'alter table outbox enable row level security; create policy p on outbox using (public.theirs(key)); create policy q on outbox for insert with check (true)',
    'an operator in an index':
      'create operator public.### (rightarg = text, function = public.theirs); create index on outbox ((operator(public.###) key))',
  }).map(([what, make]): [string, string, RegExp] => [
    `a role that the owner of a function in ${what} of the outbox does not belong to`,
    `create function public.theirs(x text) returns boolean immutable language sql as 'select true'; ${make}; alter function public.theirs(text) owner to mallory`,
    /grant \w+ to mallory;/,
  ]),
  [
    'a role that the owner of a domain of the outbox does not belong to',
    'create domain ours as text; alter table outbox alter key type ours; alter domain ours owner to mallory',
    /grant \w+ to mallory;/,
  ],
])('%s is refused, and the statements that are printed set up the right role', async (_, change, printed) => {
  const role = `installer_${Math.random().toString(36).slice(2)}`
  const { pool } = await setup(role)
  onTestFinished(async () => void (await pool.query(`drop owned by ${role} cascade; drop role ${role}`)))
  const install = `select outboxd_capture.install('item', 'data')`
  await pool.query('create table item (id int primary key, amount int)')
  await asInstaller(pool, install, role)
  await pool.query(change.replaceAll('installer', role))

  const refused = await pool.query(`begin; set local role ${role}; ${install}; commit`).catch((error: unknown) => error)
  await pool.query('rollback')
  expect(refused).toMatchObject({
    code: '42501',
    hint: expect.stringMatching(printed ?? /create role outboxd_capture;/),
  })
  const { hint } = refused as { hint: string }
  if (!printed) {
    expect(hint).toMatch(
      /grant trigger on public\.item to outboxd_capture;\n.*grant insert on public\.outbox to outboxd_capture;\n +set role outboxd_capture;$/,
    )
    return
  }
  if (printed.source.includes('mallory')) {
    const { rows } = await pool.query(`select reason from outboxd_capture.trouble where reason like '%mallory%'`)
    expect(rows).toHaveLength(1)
  }
  await pool.query(hint.slice(hint.indexOf('\n')))
  await pool.query(`begin; set local role ${role}; ${install}; commit`)
})

test('install.sql refuses superusers, and says what to do', async () => {
  const { pool } = await setup()
  await pool.query(captureFile('remove'))
  await expect(pool.query(captureFile('install'))).rejects.toMatchObject({
    hint: expect.stringMatching(
      /create role outboxd_capture;[\s\S]*authorization outboxd_capture;[\s\S]*set role outboxd_capture;/,
    ),
  })
})

test('functions and operators that another role made in public are neither run by install.sql nor bound by it', async () => {
  const { pool, ran } = await setup()
  await pool.query(`set role mallory;
    create function public.evil_role(a oid, b regnamespace) returns boolean language plpgsql as $$begin perform public.evil(''); return a = b::oid; end$$;
    create operator public.= (leftarg = oid, rightarg = regnamespace, function = public.evil_role);
    create function public.format(a text, b name, c name) returns text language plpgsql as $$begin perform public.evil(''); return a; end$$;
    reset role; create table item (id int primary key, amount int)`)
  const client = await pool.connect()
  onTestFinished(() => client.release(true))
  // As a superuser, who is refused; then as the role.
  await client.query('set search_path = public, pg_catalog')
  await client.query(captureFile('install')).catch(() => undefined)
  expect(ran.filter((told) => told.startsWith('ran as'))).toEqual([])
  await client.query('rollback; set search_path = public, pg_catalog; set role outboxd_capture')
  await client.query(captureFile('install'))
  expect((await client.query('show search_path')).rows).toEqual([{ search_path: 'public, pg_catalog' }])
  await asInstaller(pool, `select outboxd_capture.install('item', 'data')`)
  await client.query('reset role; alter table item disable trigger all; select * from outboxd_capture.trouble')
  expect(ran.filter((told) => told.startsWith('ran as'))).toEqual([])
  const { rows } = await pool.query(`
    select p.oid::regprocedure::text from pg_proc p where pronamespace = 'outboxd_capture'::regnamespace
      and not coalesce(proconfig @> '{"search_path=pg_catalog, pg_temp"}', false)
    union all
    select d.refobjid::regproc::text from pg_rewrite r join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
      where r.ev_class = 'outboxd_capture.trouble'::regclass and d.refclassid = 'pg_proc'::regclass
        and d.refobjid not in (select oid from pg_proc where pronamespace = 'outboxd_capture'::regnamespace)`)
  expect(rows).toEqual([])
  await client.query(captureFile('remove'))
})

test('removing a table also drops another role’s trigger that uses our functions', async () => {
  const { pool } = await setup()
  await pool.query(`create table item (id int primary key, amount int)`)
  await asInstaller(pool, `select outboxd_capture.install('item', 'data')`)
  const { rows } = await pool.query(
    `select tgfoid::regproc::text as f from pg_trigger where tgrelid = 'item'::regclass and tgname like '%insert%'`,
  )
  await pool.query(`grant execute on function ${rows[0]?.f}() to public; set role mallory; create table public.mine (id int primary key);
    create trigger mine after insert on mine referencing new table as new_rows for each statement execute function ${rows[0]?.f}(); reset role`)
  await asInstaller(pool, `select outboxd_capture.remove('item')`)
  expect((await pool.query(`select from pg_trigger where tgrelid = 'mine'::regclass`)).rowCount).toBe(0)
})

test('install.sql changes nothing while the view is locked, and does not wait for writers of noted changes', async () => {
  const { pool } = await setup()
  const other = await pool.connect()
  onTestFinished(() => other.release(true))
  const file = captureFile('install').replace("'lock_timeout', '5s'", "'lock_timeout', '50ms'")
  await other.query('begin; select from outboxd_capture.trouble')
  await expect(asInstaller(pool, file)).rejects.toThrow('lock timeout')
  await other.query(
    `rollback; begin; insert into outboxd_capture.error (number, table_name, operation, sqlstate, message) values (1, 'item', 'INSERT', '0', '')`,
  )
  await asInstaller(pool, file)
})

test('retry works for a role whose name needs quotes, in a session that quotes all names', async () => {
  const role = `Installer "${Math.random().toString(36).slice(2)}"`
  const quoted = `"${role.replaceAll('"', '""')}"`
  const { pool } = await setup(quoted)
  onTestFinished(async () => void (await pool.query(`drop owned by ${quoted} cascade; drop role ${quoted}`)))
  await pool.query('create table item (id int primary key, amount int)')
  await asInstaller(pool, `select outboxd_capture.install('item', 'data')`, quoted)
  await pool.query(
    'alter table outbox rename to away; insert into item values (1, 1); alter table away rename to outbox; alter table outbox owner to mallory',
  )
  const refused = await asInstaller(pool, `select outboxd_capture.install('item', 'data')`, quoted).catch(
    (error: unknown) => error,
  )
  const { hint } = refused as { hint: string }
  await pool.query(`set quote_all_identifiers = on; ${hint.slice(hint.indexOf('\n'))}`)
  const client = await pool.connect()
  onTestFinished(() => client.release(true))
  await client.query('set quote_all_identifiers = on')
  const trouble = await client.query('select notes, reason from outboxd_capture.trouble')
  expect(trouble.rows).toMatchObject([{ notes: '1' }])
  await client.query(`set role ${quoted}`)
  expect((await client.query('select * from outboxd_capture.retry()')).rows).toMatchObject([{ captured: 1, failed: 0 }])
})

test('install.sql refuses a schema of another role, because tables there may have triggers', async () => {
  const { pool } = await setup()
  await pool.query('alter schema outboxd_capture owner to mallory')
  await expect(asInstaller(pool, captureFile('install'))).rejects.toThrow('belongs to mallory')
})

const columns = `'item'::text as table_name, 0 as notes, false as has_unknown, now() as since`
const evilNotes = `create type bad as enum ('a');
  create function evil_number(x bad) returns float8 language plpgsql as $$begin perform public.evil(''); return 0; end$$;
  create cast (bad as float8) with function evil_number(bad);`

describe('code of the owner of a schema outboxd_capture does not run with the reader’s rights', () => {
  test.each([
    ['a function', '', `select ${columns}, evil('')::text as reason`],
    [
      'a function of a view below',
      `create view below as select evil('')::text as reason;`,
      `select ${columns}, reason from below`,
    ],
    [
      'a policy’s function',
      `create table below (reason text); insert into below values ('a'); alter table below enable row level security,
        force row level security; create policy p on below using (evil(reason));`,
      `select ${columns}, reason from below`,
    ],
    [
      'a cast to the type that is read',
      evilNotes,
      `select 'item'::text as table_name, 'a'::bad as notes, false as has_unknown, now() as since, 'a'::text as reason`,
    ],
    [
      'an index’s expression',
      `create function folded() returns int immutable language plpgsql as $$begin perform public.evil(''); return 1; end$$;
       create table below (reason text); insert into below values ('a'); create index on below ((folded()));`,
      `select ${columns}, reason from below`,
    ],
    [
      'an operator',
      `create operator public.=== (leftarg = text, function = evil);`,
      `select ${columns}, (=== '')::text as reason`,
    ],
  ])('%s', async (_, make, view) => {
    const { pool, ran } = await setup()
    await pool.query(`drop schema outboxd_capture cascade; create schema outboxd_capture authorization mallory;
      set role mallory; set search_path = outboxd_capture, public; ${make.replace('leftarg', 'rightarg')}
      create view trouble as ${view}; grant usage on schema outboxd_capture to public; grant select on trouble to public;
      reset role; reset search_path`)
    ran.length = 0
    const told = toChangeCaptureProblems(await readChangeCaptureFaults(pool))
    expect(ran).toEqual([])
    expect(told).toMatchObject([
      { subject: 'outboxd_capture.trouble', detail: expect.stringMatching(/^SECURITY: .*code of another role/) },
    ])
  })
})

test('retry refuses superusers, because it would run code of the outbox’s owner', async () => {
  const { pool } = await setup()
  await expect(pool.query('select * from outboxd_capture.retry()')).rejects.toMatchObject({
    hint: 'set role outboxd_capture;',
  })
})

/** A database with change capture, whose role `mallory` may make types and functions. `ran`: the warnings of `evil`. */
async function setup(role?: string) {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { pool } = database
  const ran: string[] = []
  const heard = new WeakSet<pg.PoolClient>()
  pool.on('acquire', (client) => {
    if (heard.has(client)) return
    heard.add(client)
    client.on('notice', ({ message }) => ran.push(message ?? ''))
  })
  await createRole(pool, 'mallory')
  await installCapture(pool, role)
  await pool.query(`grant create on schema public to mallory;
    create function evil(x text) returns boolean language plpgsql as
      $$begin raise warning 'ran as %', current_user; return true; end$$`)
  return { pool, ran }
}
