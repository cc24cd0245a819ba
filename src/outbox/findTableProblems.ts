import { type Database, queryOne } from '../postgres/database.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'
import type { Column } from './columns.ts'
import { listColumnsNamedInOutboxFile, type OutboxTable, tableFormOf } from './outboxTable.ts'

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
  const kind = findRelationKindProblem(inspected)
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

/** The sessions that write a view or a foreign table are not seen, so a row that commits late would be missed. */
function findRelationKindProblem({ kind, table }: InspectedTable): string | null {
  if (kind === 'm')
    return 'is a materialized view, in which no row can be locked or marked: describe the table below it'
  if (!/^[vf]$/.test(kind) || tableFormOf(table) !== 'append-only') return null
  return 'is a view or a foreign table, in which a row that commits late would be missed with "state: none". Give it a column that outboxd can set (state with set: [queued], or a value for queued), or describe the table itself, with a DATABASE_URL that leads to its database'
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
  for (const name of [table.sequence, tableFormOf(table) === 'append-only' ? table.id : null]) {
    if (name !== null && columns.get(name)?.notNull === false)
      problems.push(`allows NULL in "${name}", by which rows are put in order: add a NOT NULL constraint`)
  }
  return problems
}

const payloadTypes = /^(jsonb?|text|character varying|character|bytea)$/
const numberTypes = /^(bigint|integer|numeric|double precision)$/
const timeTypes = /^(timestamp with(out)? time zone|date)$/

/**
 * Refuses an append-only table whose numbers are not drawn one by one at the insert: rows with lower numbers would come
 * behind the position.
 */
async function findSequenceProblems(db: Database, { qualified, table, columns }: InspectedTable): Promise<string[]> {
  if (tableFormOf(table) !== 'append-only') return []
  const { rows } = await db.query<{ name: string; goesUpByOne: boolean | null }>(
    `select a.attname as name, s.seqcache = 1 and s.seqincrement = 1 as "goesUpByOne"
     from pg_attribute a left join pg_sequence s on s.seqrelid = pg_get_serial_sequence($1, a.attname)::regclass::oid
     where a.attrelid = to_regclass($1)::oid and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    [qualified],
  )
  const column = table.sequence
  if (column === null) {
    const numbered = rows.find(({ goesUpByOne }) => goesUpByOne)?.name
    const advice =
      numbered !== undefined
        ? `name its column as "sequence: ${numbered}"`
        : `add one (alter table ${qualified} add column ${freeName(columns)} bigint generated always as identity unique), then name it as "sequence: ${freeName(columns)}"`
    return [`says of no row whether it waits, so outboxd reads it by a column that a sequence fills: ${advice}`]
  }
  const goesUpByOne = rows.find(({ name }) => name === column)?.goesUpByOne ?? null
  if (goesUpByOne) return []
  const another = `add another column (alter table ${qualified} add column ${freeName(columns)} bigint generated always as identity unique), then name it as "sequence"`
  return [
    goesUpByOne === null
      ? `draws "${column}" from no sequence of its own (identity, serial, or a sequence owned by it): ${another}`
      : `draws "${column}" from a sequence that caches numbers or does not count up by 1, so a row may come late with a lower number: alter the sequence (cache 1, increment 1), or ${another}`,
  ]
}

const freeName = (columns: InspectedTable['columns']): string =>
  ['seq', 'outboxd_seq'].find((name) => !columns.has(name)) ?? 'outboxd_seq_2'

/**
 * Checks that ids are unique: the second of two rows with one id would never be sent. If the catalog cannot show this,
 * as for a view, `outbox.yaml` must promise it. An index does not cover the rows of inheriting tables.
 */
async function findIdColumnProblems(
  db: Database,
  { qualified, kind, table: { id, idPromised } }: InspectedTable,
): Promise<string[]> {
  const state = await queryOne<{ notNull: boolean; unique: boolean; inherited: boolean }>(
    db,
    `select a.attnotnull as "notNull", h.inherited,
       not h.inherited and exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null
         and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) as unique
     from pg_class c join pg_attribute a on a.attrelid = c.oid
       cross join lateral (select c.relkind <> 'p' and exists (select from pg_inherits where inhparent = c.oid) as inherited) h
     where c.oid = to_regclass($1)::oid and a.attname = $2 and not a.attisdropped`,
    [qualified, id],
  )
  const problems: string[] = []
  if (!state.unique && (kind !== 'r' || state.inherited)) {
    if (!idPromised)
      problems.push(
        `is a view, has partitions or has inheriting tables, so no index shows that "${id}" is unique. If no two rows can have the same id, promise that (id_unique: promised)`,
      )
  } else if (!state.unique)
    problems.push(
      `has no unique index on exactly "${id}", and two rows of one id would count as one: create unique index concurrently on ${qualified} ("${id}"), or name another column as id`,
    )
  // Of a view the catalog does not know this: its rows without an id are left alone.
  if (!state.notNull && /^[rp]$/.test(kind))
    problems.push(`allows NULL in "${id}", by which rows are recognised: add a NOT NULL constraint`)
  return problems
}

/**
 * Refuses a filter whose result may change although the row does not: a row for which it becomes true later would lie
 * behind the position.
 */
function findFilterProblems({ filter, ...table }: OutboxTable): string[] {
  const fault = filter === null || tableFormOf(table) !== 'append-only' ? null : findFilterFault(filter)
  if (fault === null) return []
  return [
    `has a filter with ${fault}. With "state: none" a row is read once, so the filter may only compare columns of the row with constants (status = 'open' and amount > 0). Let the ERP write a column that the filter reads, or let outboxd mark rows (set: [queued])`,
  ]
}

/**
 * Says what a filter has besides comparisons of columns with constants: `now()`, or a query. Null if it has nothing
 * else.
 */
function findFilterFault(filter: string): string | null {
  const tokens = [...filter.matchAll(token)].map(([text]) => text).filter((text) => !/^(\s|--)/.test(text))
  for (const [i, text] of tokens.entries()) {
    const isName = /^[\p{L}_]/u.test(text)
    if (isName && forbiddenWords.has(text.toLowerCase())) return text
    if (isName && tokens[i + 1] === '(' && !wordsBeforeBracket.has(text.toLowerCase())) return `${text}()`
    if (text.startsWith('"') && tokens[i + 1] === '(') return `${text}()`
    if (/^'(now|today|tomorrow|yesterday)'$/i.test(text)) return text
    if (!isName && !allowed.test(text)) return text
  }
  return null
}

/** A space, comment, text, quoted name, word, number, cast, comparison, or any other character. */
const token = /\s+|--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*|\d+(?:\.\d+)?|::|<>|!=|<=|>=|[\s\S]/gu

const allowed = /^(?:'[\s\S]*'|"[\s\S]*"|\d+(?:\.\d+)?|::|<>|!=|<=|>=|[=<>(),.[\]-])$/

const wordsBeforeBracket = new Set(['and', 'or', 'not', 'in', 'any', 'all', 'varchar', 'numeric', 'char', 'array'])

const forbiddenWords = new Set([
  ...['select', 'case', 'exists', 'with', 'now'],
  ...['current_date', 'current_time', 'current_timestamp', 'localtime', 'localtimestamp'],
  ...['current_user', 'session_user', 'user', 'current_role', 'current_schema', 'current_catalog'],
])

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
