import type { Database } from '../postgres/database.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'
import type { Column } from './columns.ts'
import { isMarkedOnCapture, listColumnsNamedInOutboxFile, type OutboxTable } from './outboxTable.ts'

interface InspectedTable {
  /** Quoted, with its schema. */
  readonly qualified: string
  /** pg_class.relkind. */
  readonly kind: string
  readonly table: OutboxTable
  readonly columns: ReadonlyMap<string, Column>
}

/** Returns clauses that follow the table's name. */
export async function findDescriptionMismatchClauses(pool: Database, inspected: InspectedTable): Promise<string[]> {
  const kind = await findRelationKindProblem(pool, inspected)
  if (kind !== null) return [kind]
  const problems = findColumnProblems(inspected)
  if (problems.length > 0) return problems
  const ofSequence = await findSequenceProblems(pool, inspected)
  if (ofSequence.length > 0) return ofSequence
  return [
    ...(await findIdColumnProblems(pool, inspected)),
    ...findFilterProblems(inspected.table),
    ...(await findRowSecurityProblemClauses(pool, inspected.qualified, inspected.table)),
  ]
}

export async function findTablesOfView(db: Database, qualifiedName: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select distinct pg_catalog.format('%I.%I', n.nspname, c.relname) as name
     from pg_rewrite r
       join pg_depend d on d.classid = 'pg_rewrite'::regclass::oid and d.objid = r.oid and d.refclassid = 'pg_class'::regclass::oid
       join pg_class c on c.oid = d.refobjid and c.oid <> r.ev_class and c.relkind in ('r', 'p', 'v', 'm', 'f')
       join pg_namespace n on n.oid = c.relnamespace
     where r.ev_class = to_regclass($1)::oid order by name`,
    [qualifiedName],
  )
  return rows.map(({ name }) => name)
}

export function useTableInsteadClause(relkind: string, tablesBelow: readonly string[]): string {
  if (relkind === 'f') return 'let DATABASE_URL lead to the database where the table itself is'
  if (tablesBelow.length === 0) return 'describe the table below it'
  return `describe the table below it (${tablesBelow.map((name) => `outboxd describe '${name}'`).join(', or ')})`
}

/** Kinds of relations whose rows do not show which transaction wrote them: names by pg_class.relkind. */
export const kindNamesWhereRowsMustBeMarked: Readonly<Record<string, string>> = {
  v: 'a view',
  m: 'a materialized view',
  f: 'a foreign table',
}

export const mustRowsBeMarked = (relkind: string): boolean => kindNamesWhereRowsMustBeMarked[relkind] !== undefined

/**
 * Without marks, the ledger tracks rows by the transactions that wrote them. A view does not show these transactions,
 * and a foreign table shows 0, so a row that commits late would be missed.
 */
async function findRelationKindProblem(
  db: Database,
  { qualified, kind: relkind, table }: InspectedTable,
): Promise<string | null> {
  if (!mustRowsBeMarked(relkind) || (relkind !== 'm' && isMarkedOnCapture(table))) return null
  const other = useTableInsteadClause(relkind, relkind === 'f' ? [] : await findTablesOfView(db, qualified))
  if (relkind === 'm')
    return `is ${kindNamesWhereRowsMustBeMarked[relkind]}, in which no row can be locked or marked: ${other}`
  return `is ${kindNamesWhereRowsMustBeMarked[relkind]}, which does not show the transactions that wrote its rows, so they must be marked on capture. Give it a column that outboxd can set (state with set: [queued], or a value for queued), or ${other}`
}

function findColumnProblems({ table, columns }: InspectedTable): string[] {
  const missing = listColumnsNamedInOutboxFile(table).flatMap(({ column, entry }) =>
    columns.has(column)
      ? []
      : [
          `has no column "${column}" (${entry}); it has ${[...columns.keys()].join(', ')}${didYouMeanHint(column, columns.keys())}`,
        ],
  )
  if (missing.length > 0) return missing
  const problems: string[] = []
  const { payload, createdAt } = table
  const payloadType = payload.kind === 'column' ? (columns.get(payload.column)?.baseType ?? '') : 'json'
  if (!payloadTypes.test(payloadType))
    problems.push(`keeps the payload as ${payloadType}: it must be jsonb, json, text or bytea`)
  const timeType = createdAt === null ? null : (columns.get(createdAt.column)?.baseType ?? '')
  if (timeType !== null && numberTypes.test(timeType) && createdAt?.unit === null)
    problems.push(`keeps created_at as a number: name its unit in outbox.yaml, as in { column: …, unit: milliseconds }`)
  else if (timeType !== null && !numberTypes.test(timeType) && !timeTypes.test(timeType))
    problems.push(`keeps created_at as ${timeType}: it must be a time, a date or a number`)
  if (!isMarkedOnCapture(table)) {
    for (const name of [table.sequence, table.order, table.id]) {
      if (name !== null && columns.get(name)?.notNull === false)
        problems.push(`allows NULL in "${name}", by which rows are put in order: add a NOT NULL constraint`)
    }
  }
  return problems
}

const payloadTypes = /^(jsonb?|text|character varying|character|bytea)$/
const numberTypes = /^(bigint|integer|numeric|double precision)$/
const timeTypes = /^(timestamp with(out)? time zone|date)$/

/** Refuses a sequence that caches numbers, because a session then draws numbers long before its inserts. */
async function findSequenceProblems(db: Database, { qualified, table }: InspectedTable): Promise<string[]> {
  const column = table.sequence
  if (column === null) return []
  const { rows } = await db.query<{ cached: number; falls: boolean }>(
    'select seqcache::int as cached, seqincrement < 0 as falls from pg_sequence where seqrelid = pg_get_serial_sequence($1, $2)::regclass::oid',
    [qualified, column],
  )
  const instead = 'leave "sequence" out, and rows are read in the order of their transactions'
  if (rows[0] === undefined)
    return [`draws "${column}" from no sequence of its own (identity, serial, or a sequence owned by it): ${instead}`]
  if (!rows[0].falls && rows[0].cached === 1) return []
  return [
    `draws "${column}" from a sequence that counts down or caches numbers: let it count up with cache 1, or ${instead}`,
  ]
}

const idStateSql = `
  select c.relkind as kind, a.attnotnull as "notNull",
    exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null
      and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) as unique,
    exists (select from pg_inherits h where h.inhparent = c.oid) and c.relkind <> 'p' as inherited
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.oid = to_regclass($1)::oid and a.attname = $2 and not a.attisdropped`

/**
 * Checks that ids are unique: the second of two rows with one id would never be sent. If the catalog cannot show this,
 * as for a view, `outbox.yaml` must promise it.
 */
async function findIdColumnProblems(
  db: Database,
  { qualified, table: { id, idPromised } }: InspectedTable,
): Promise<string[]> {
  const { rows } = await db.query<{ kind: string; notNull: boolean; unique: boolean; inherited: boolean }>(idStateSql, [
    qualified,
    id,
  ])
  const [state] = rows
  if (state === undefined) return []
  // An index does not cover the rows of inheriting tables.
  const isUnique = state.unique && !state.inherited
  const isNeverNull = state.notNull || state.kind === 'm'
  if (isUnique && isNeverNull) return []
  if (!/^[rm]$/.test(state.kind) || state.inherited) {
    const why = `is a view, has partitions or has inheriting tables, so no index shows that "${id}" is unique. If no two rows can have the same id, promise that (id_unique: promised)`
    return idPromised ? [] : [why]
  }
  return [
    isUnique
      ? null
      : `has no unique index on exactly "${id}", and two rows of one id would count as one: create unique index concurrently on ${qualified} ("${id}"), or name another column as id`,
    isNeverNull ? null : `allows NULL in "${id}", by which rows are recognised: add a NOT NULL constraint`,
  ].filter((problem) => problem !== null)
}

/**
 * Refuses `not_before <= now()`, because a row that passes later would stay behind the cursor. If another filter
 * includes a row late, the hourly comparison captures the row.
 */
function findFilterProblems({ filter, ...table }: OutboxTable): string[] {
  const used = timeFunctions.exec(filter?.replaceAll(/'(?:[^']|'')*'/g, '') ?? '')?.[0]
  if (used === undefined || isMarkedOnCapture({ filter, ...table })) return []
  return [
    `has a filter with ${used}, which changes although the row does not. The ledger keeps a cursor, so a row for which the filter becomes true later would be captured late. Mark rows on capture (set: [queued]), or let the ERP write a column when the row may be sent`,
  ]
}

const timeFunctions =
  /\b(?:now|age|random|timeofday|\w+_timestamp)(?=\s*\()|\b(?:current_date|current_time|current_timestamp|localtime|localtimestamp)\b/i

/** Row-level security without a fitting policy hides every row, and raises no error. */
export async function findRowSecurityProblemClauses(
  db: Database,
  qualified: string,
  table: OutboxTable,
): Promise<string[]> {
  const { isActive, role, allows } = await readPolicies(db, qualified)
  const updates = table.state !== null || table.write.length > 0
  const missing = isActive
    ? [...(allows.select ? [] : ['select']), ...(allows.update || !updates ? [] : ['update'])]
    : []
  return missing.map(
    (command) =>
      `has row-level security, and no policy lets ${role} ${command} rows: create policy outboxd_${command} on ${qualified} for ${command} to ${role} using (…)`,
  )
}

export async function findRowSecurityRemarks(db: Database, qualified: string): Promise<string[]> {
  const { isActive, role } = await readPolicies(db, qualified)
  if (!isActive) return []
  return [
    `the table has row-level security that holds for ${role}: the daemon neither sends nor counts rows that no policy shows it. Make sure that a policy shows it every row to send`,
  ]
}

interface Policies {
  /** False for owners, superusers and roles that bypass row-level security. */
  isActive: boolean
  role: string
  allows: { select: boolean; update: boolean }
}

async function readPolicies(db: Database, qualified: string): Promise<Policies> {
  const { rows } = await db.query<Policies>(
    `select row_security_active(c.oid) as "isActive", pg_catalog.quote_ident(current_user) as role,
       json_build_object('select', coalesce(bool_or(p.polcmd in ('r', '*')), false),
         'update', coalesce(bool_or(p.polcmd in ('w', '*')), false)) as allows
     from pg_class c left join pg_policy p on p.polrelid = c.oid and p.polpermissive
       and exists (select from unnest(p.polroles) r where r = 0 or pg_has_role(r, 'usage'))
     where c.oid = to_regclass($1)::oid group by c.oid`,
    [qualified],
  )
  return rows[0] ?? { isActive: false, role: '', allows: { select: false, update: false } }
}
