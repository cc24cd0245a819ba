import type { Database } from '../../postgres/database.ts'

/** `run`: for daemons, and for commands that change something. */
export type RoleKind = 'run' | 'read'

type Act = 'insert' | 'update' | 'delete'

interface Changes {
  acts: readonly Act[]
  holds: string
}

const all: readonly Act[] = ['insert', 'update', 'delete']

/**
 * The tables that daemons and commands change. Both may read every table of our schemas.
 * `test/ledger/operator/grants.test.ts` compares this list with the statements in `src`.
 */
export const allowedChangesByTable: Readonly<Record<string, Changes>> = {
  'outboxd.submission': { acts: all, holds: 'records, until they are pruned' },
  'outboxd.submission_event': {
    acts: ['insert', 'update'],
    holds: 'the log. Pruning and `erase` empty texts; a trigger refuses other changes',
  },
  'outboxd.document': {
    acts: ['insert', 'update'],
    holds: 'what was sent last of documents whose records were deleted',
  },
  'outboxd.state_delta': { acts: ['insert', 'delete'], holds: 'counts by state' },
  'outboxd.request': { acts: all, holds: 'requests that count against the limit' },
  'outboxd.pause': { acts: all, holds: 'pauses, and the breaker' },
  'outboxd.request_count': { acts: all, holds: 'requests by minute, and after two days by hour' },
  'outboxd.instance': { acts: all, holds: 'heartbeats' },
  'outboxd.problem': { acts: all, holds: 'problems, and skipped rows' },
  'outboxd.ledger': {
    acts: ['insert', 'update'],
    holds: 'the outbox table and the service of the ledger, the settings of its daemons, and where it lives',
  },
  'outboxd.outbox_cursor': {
    acts: ['insert', 'update'],
    holds: 'the position in an append-only table, and up to where records were deleted',
  },
  'outboxd.operator_act': { acts: ['insert'], holds: 'acts of operators' },
  'outboxd.poll': { acts: ['update', 'delete'], holds: 'a view of the jobs, by record' },
  'outboxd_jobs.job_common': { acts: ['insert', 'update'], holds: 'the jobs: when each poll is due' },
}

const actsOf = (schema: string) =>
  Object.fromEntries(
    Object.entries(allowedChangesByTable).flatMap(([name, { acts }]) =>
      name.startsWith(`${schema}.`) ? [[name.slice(schema.length + 1), acts]] : [],
    ),
  )
const actsByTable = JSON.stringify({ ledger: actsOf('outboxd'), jobs: actsOf('outboxd_jobs') })

/** CTEs with the privileges that a role of kind $1 needs. $2 has the changes by schema and table. Identity columns need none. */
const wanted = `
  ours as (select oid, nspname as name from pg_namespace where nspname in ('outboxd'::name, 'outboxd_jobs'::name)),
  ours_table as (
    select ours.name as schema, c.oid, c.relname as name, c.relowner, c.relacl
    from ours join pg_class c on c.relnamespace = ours.oid and c.relkind in ('r', 'p', 'v')
  ),
  wanted as (
    select schema, oid, name, 'select' as act, 0::bigint as nth from ours_table
    union all
    select schema, oid, name, act, nth from ours_table
    cross join jsonb_array_elements_text($2::jsonb -> case schema when 'outboxd'::name then 'ledger' else 'jobs' end -> name) with ordinality as acts (act, nth)
    where $1 = 'run'
  )`

const statements = (role: string) => `
  select pg_catalog.format('grant usage on schema %I to %I', name, ${role}) as statement, 1 as n from granted_schema
  union select pg_catalog.format('grant %s on %s to %I', acts, string_agg(pg_catalog.format('%I.%I', schema, name), ', ' order by name), ${role}), 2 from (
    select schema, name, string_agg(act, ', ' order by nth) as acts from granted_table group by schema, name
  ) tables group by schema, acts`

/** @returns the grants that our role lacks to run a daemon */
export async function readMissingGrantStatements(db: Database): Promise<string[]> {
  const { rows } = await db.query<{ statement: string }>(
    `with ${wanted},
     granted_schema as (select name from ours where not has_schema_privilege(oid, 'usage')),
     granted_table as (select schema, name, act, nth from wanted where not has_table_privilege(oid, act))
     select statement from (${statements('current_user')}) missing order by n, statement`,
    ['run' satisfies RoleKind, actsByTable],
  )
  return rows.map(({ statement }) => statement)
}

export async function readLedgerPrivilegeStatements(db: Database, role: string, kind: RoleKind): Promise<string[]> {
  const { rows } = await db.query<{ statement: string }>(
    `with ${wanted},
     granted_schema as (select name from ours),
     granted_table as (select schema, name, act, nth from wanted),
     needless as (
       select schema, name, lower(a.privilege_type) as act from ours_table t cross join aclexplode(t.relacl) a
       join pg_roles r on r.oid = a.grantee and r.rolname = $3 and r.oid <> t.relowner
       where not exists (select from wanted w where w.oid = t.oid and w.act = lower(a.privilege_type))
     ),
     revoked as (select schema, name, string_agg(act, ', ' order by act) as acts from needless group by schema, name)
     select statement from (
       ${statements('$3::text')}
       union select pg_catalog.format('revoke %s on %s from %I', acts, string_agg(pg_catalog.format('%I.%I', schema, name), ', ' order by name), $3::text), 3
       from revoked group by schema, acts
     ) all_of_them order by n, statement`,
    [kind, actsByTable, role],
  )
  return rows.map(({ statement }) => statement)
}

export async function readCreateRoleStatements(db: Database, role: string): Promise<string[]> {
  const { rows } = await db.query<{ create: string; connect: string; isThere: boolean }>(
    `select pg_catalog.format('create role %I login', $1::text) as create,
       pg_catalog.format('grant connect on database %I to %I', current_database(), $1::text) as connect,
       exists (select from pg_roles where rolname = $1) as "isThere"`,
    [role],
  )
  return rows.flatMap(({ create, connect, isThere }) => (isThere ? [connect] : [create, connect]))
}
