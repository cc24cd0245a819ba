import type { Database } from '../../postgres/database.ts'
import { queueSchema } from '../queue.ts'

/** What a role is for: daemons and commands that change something, or those that only look. */
export type RoleKind = 'run' | 'read'

/**
 * What a role of a kind ($2) needs of the tables of our schemas, one row for each act: only a migration writes what says which of
 * them were applied, and nobody changes an event.
 */
const wanted = `
  ours as (select oid, nspname as name from pg_namespace where nspname in ('outboxd', $1)),
  wanted as (
    select ours.name as schema, c.oid, c.relname as name, act, nth
    from ours join pg_class c on c.relnamespace = ours.oid and c.relkind in ('r', 'p', 'v')
    cross join unnest(case
      when $2 = 'read' or c.relkind = 'v' or (ours.name = 'outboxd' and c.relname = 'migration') then array['select']
      else array['select', 'insert', 'update', 'delete']
    end) with ordinality as acts (act, nth)
  ), sequence as materialized ( -- what is no sequence is not to be asked for
    select ours.name as schema, c.oid from ours join pg_class c on c.relnamespace = ours.oid
    where $2 = 'run' and c.relkind = 'S'
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i') -- of an identity column, which needs no right
  )`

/** One statement for all tables of a schema that are granted the same. @param role an SQL expression */
const statements = (role: string) => `
  select format('grant usage on schema %I to %I', name, ${role}) as statement, 1 as n from granted_schema
  union select format('grant %s on %s to %I', acts, string_agg(format('%I.%I', schema, name), ', ' order by name), ${role}), 2 from (
    select schema, name, string_agg(act, ', ' order by nth) as acts from granted_table group by schema, name
  ) tables group by schema, acts
  union select format('grant usage on all sequences in schema %I to %I', schema, ${role}), 3 from granted_sequence`

/** What our role must not do of what a daemon does in our own schemas. @returns the statements that let it */
export async function readMissingGrants(db: Database): Promise<string[]> {
  const { rows } = await db.query<{ statement: string }>(
    `with ${wanted},
     granted_schema as (select name from ours where not has_schema_privilege(oid, 'usage')),
     granted_table as (select schema, name, act, nth from wanted where not has_table_privilege(oid, act)),
     granted_sequence as (select schema from sequence where not has_sequence_privilege(oid, 'usage'))
     select statement from (${statements('current_user')}) missing order by n, statement`,
    [queueSchema, 'run' satisfies RoleKind],
  )
  return rows.map(({ statement }) => statement)
}

/** All that a role needs in our schemas, which have been migrated. @returns statements, the schema's first */
export async function readLedgerGrants(db: Database, role: string, kind: RoleKind): Promise<string[]> {
  const { rows } = await db.query<{ statement: string }>(
    `with ${wanted},
     granted_schema as (select name from ours),
     granted_table as (select schema, name, act, nth from wanted),
     granted_sequence as (select schema from sequence)
     select statement from (${statements('$3::text')}) all_of_them order by n, statement`,
    [queueSchema, kind, role],
  )
  return rows.map(({ statement }) => statement)
}

/** How a role gets into a database: it is made where there is none of the name. */
export async function readRoleStatements(db: Database, role: string): Promise<string[]> {
  const { rows } = await db.query<{ create: string; connect: string; isThere: boolean }>(
    `select format('create role %I login', $1::text) as create,
       format('grant connect on database %I to %I', current_database(), $1::text) as connect,
       exists (select from pg_roles where rolname = $1) as "isThere"`,
    [role],
  )
  return rows.flatMap(({ create, connect, isThere }) => (isThere ? [connect] : [create, connect]))
}
