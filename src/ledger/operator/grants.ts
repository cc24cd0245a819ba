import type { Database } from '../../postgres/database.ts'
import { queueSchema } from '../queue.ts'

/** `run`: daemons, and commands that change something. */
export type RoleKind = 'run' | 'read'

type Act = 'insert' | 'update' | 'delete'

interface Changes {
  acts: readonly Act[]
  why: string
}

/**
 * What daemons and commands change, by table. They may read every table of our schemas.
 * `test/ledger/operator/grants.test.ts` compares this with the statements in `src`.
 */
export const changesByTable: Readonly<Record<string, Changes>> = {
  'outboxd.submission': {
    acts: ['insert', 'update', 'delete'],
    why: 'records enter, take their steps, and are pruned',
  },
  'outboxd.submission_event': {
    acts: ['insert', 'update'],
    why: 'each step is logged; pruning and `erase` empty a text, and a trigger refuses every other change',
  },
  'outboxd.pruned_submission': {
    acts: ['insert', 'update', 'delete'],
    why: 'ids of pruned records, so that none is sent again',
  },
  'outboxd.state_delta': { acts: ['insert', 'delete'], why: 'counts by state: triggers add, the daemon sums up' },
  'outboxd.slot': { acts: ['insert', 'update'], why: 'a slot is taken for each request' },
  'outboxd.budget': { acts: ['insert', 'update'], why: 'the limit and the window in use' },
  'outboxd.passage': { acts: ['insert', 'update'], why: 'which resources answered since a pause' },
  'outboxd.pause': { acts: ['insert', 'update', 'delete'], why: 'pauses begin, last longer and end' },
  'outboxd.refusal_run': { acts: ['insert', 'update', 'delete'], why: 'refusals in a row, which call for a pause' },
  'outboxd.believed_refusal': {
    acts: ['insert', 'update', 'delete'],
    why: 'refusals that were believed after a trial',
  },
  'outboxd.request_count': { acts: ['insert', 'update', 'delete'], why: 'requests by minute; minutes become hours' },
  'outboxd.request_hour': { acts: ['insert', 'delete'], why: 'requests by hour, for 28 days' },
  'outboxd.period': { acts: ['insert', 'delete'], why: 'what became of records, by minute and hour' },
  'outboxd.instance': { acts: ['insert', 'update', 'delete'], why: 'signs of life' },
  'outboxd.instance_setting': { acts: ['insert', 'update', 'delete'], why: 'settings that instances compare' },
  'outboxd.clock': { acts: ['insert', 'update'], why: 'a clock that was set back is noticed' },
  'outboxd.problem': { acts: ['insert', 'update', 'delete'], why: 'problems begin and end' },
  'outboxd.ledger': { acts: ['update'], why: 'which service the ledger belongs to' },
  'outboxd.outbox': { acts: ['insert', 'update'], why: 'which outbox the ledger serves' },
  'outboxd.outbox_cursor': { acts: ['insert', 'update'], why: 'how far a table was read that remembers nothing' },
  'outboxd.skipped_row': { acts: ['insert', 'update', 'delete'], why: 'skipped rows' },
  'outboxd.edited_row': {
    acts: ['insert', 'delete'],
    why: 'rows that the ERP edited while their records were under way',
  },
  'outboxd.operator_act': { acts: ['insert'], why: 'what a person did' },
  'outboxd.chain_block': {
    acts: ['insert', 'update'],
    why: 'the logs are chained; a trigger refuses to change what a block says',
  },
  'outboxd.history': {
    acts: ['insert', 'update'],
    why: 'daemons note how far they found the ledger whole, and that it lost something; `recover` and `adopt` agree to it',
  },
  'pgboss.job': { acts: ['insert', 'update', 'delete'], why: 'polls that are due' },
  'pgboss.job_common': { acts: ['insert', 'update', 'delete'], why: 'the partition of `pgboss.job` with our polls' },
  'pgboss.job_dependency': { acts: ['delete'], why: 'pg-boss clears it after deleting jobs' },
  'pgboss.queue': { acts: ['update'], why: 'pg-boss notes when it last looked after the queue' },
  'pgboss.version': { acts: ['update'], why: 'pg-boss notes when to look less often' },
}

const actsByTable = JSON.stringify(
  Object.fromEntries(Object.entries(changesByTable).map(([name, { acts }]) => [name, acts])),
)

/** SQL: what a role of kind $2 needs; $3 has the changes by table. */
const wanted = `
  ours as (select oid, nspname as name from pg_namespace where nspname in ('outboxd', $1)),
  ours_table as (
    select ours.name as schema, c.oid, c.relname as name, c.relowner, c.relacl
    from ours join pg_class c on c.relnamespace = ours.oid and c.relkind in ('r', 'p', 'v')
  ),
  wanted as (
    select schema, oid, name, 'select' as act, 0::bigint as nth from ours_table
    union all
    select schema, oid, name, act, nth from ours_table
    cross join jsonb_array_elements_text($3::jsonb -> (schema || '.' || name)) with ordinality as acts (act, nth)
    where $2 = 'run'
  ), sequence as materialized ( -- has_sequence_privilege fails for other relations
    select ours.name as schema, c.oid from ours join pg_class c on c.relnamespace = ours.oid
    where $2 = 'run' and c.relkind = 'S'
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i') -- an identity column needs no grant
  )`

/** SQL: one statement for all tables with the same grants. @param role SQL */
const statements = (role: string) => `
  select pg_catalog.format('grant usage on schema %I to %I', name, ${role}) as statement, 1 as n from granted_schema
  union select pg_catalog.format('grant %s on %s to %I', acts, string_agg(pg_catalog.format('%I.%I', schema, name), ', ' order by name), ${role}), 2 from (
    select schema, name, string_agg(act, ', ' order by nth) as acts from granted_table group by schema, name
  ) tables group by schema, acts
  union select pg_catalog.format('grant usage on all sequences in schema %I to %I', schema, ${role}), 3 from granted_sequence`

/** @returns statements for what our role lacks to run a daemon */
export async function readMissingGrants(db: Database): Promise<string[]> {
  const { rows } = await db.query<{ statement: string }>(
    `with ${wanted},
     granted_schema as (select name from ours where not has_schema_privilege(oid, 'usage')),
     granted_table as (select schema, name, act, nth from wanted where not has_table_privilege(oid, act)),
     granted_sequence as (select schema from sequence where not has_sequence_privilege(oid, 'usage'))
     select statement from (${statements('current_user')}) missing order by n, statement`,
    [queueSchema, 'run' satisfies RoleKind, actsByTable],
  )
  return rows.map(({ statement }) => statement)
}

/** @returns statements that grant what a role needs and revoke the rest */
export async function readLedgerGrants(db: Database, role: string, kind: RoleKind): Promise<string[]> {
  const { rows } = await db.query<{ statement: string }>(
    `with ${wanted},
     granted_schema as (select name from ours),
     granted_table as (select schema, name, act, nth from wanted),
     granted_sequence as (select schema from sequence),
     -- 0.2.0 granted more
     needless as (
       select schema, name, lower(a.privilege_type) as act from ours_table t cross join aclexplode(t.relacl) a
       join pg_roles r on r.oid = a.grantee and r.rolname = $4 and r.oid <> t.relowner
       where not exists (select from wanted w where w.oid = t.oid and w.act = lower(a.privilege_type))
     ),
     revoked as (select schema, name, string_agg(act, ', ' order by act) as acts from needless group by schema, name)
     select statement from (
       ${statements('$4::text')}
       union select pg_catalog.format('revoke %s on %s from %I', acts, string_agg(pg_catalog.format('%I.%I', schema, name), ', ' order by name), $4::text), 4
       from revoked group by schema, acts
     ) all_of_them order by n, statement`,
    [queueSchema, kind, actsByTable, role],
  )
  return rows.map(({ statement }) => statement)
}

export async function readRoleStatements(db: Database, role: string): Promise<string[]> {
  const { rows } = await db.query<{ create: string; connect: string; isThere: boolean }>(
    `select pg_catalog.format('create role %I login', $1::text) as create,
       pg_catalog.format('grant connect on database %I to %I', current_database(), $1::text) as connect,
       exists (select from pg_roles where rolname = $1) as "isThere"`,
    [role],
  )
  return rows.flatMap(({ create, connect, isThere }) => (isThere ? [connect] : [create, connect]))
}
