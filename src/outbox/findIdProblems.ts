import type { Database } from '../postgres/database.ts'
import type { OutboxTable } from './outboxTable.ts'

interface IdState {
  /** pg_class.relkind: r an ordinary table, p a partitioned one, v a view, f a foreign table. */
  kind: string
  notNull: boolean
  /** A valid unique index of all rows on exactly this column. A deferred one will do: what is committed is unique. */
  unique: boolean
  /** Rows of other tables stand in it, which its own indexes do not cover. */
  inherited: boolean
}

const stateSql = `
  select c.relkind as kind, a.attnotnull as "notNull",
    exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indpred is null
      and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) as unique,
    exists (select from pg_inherits h where h.inhparent = c.oid) and c.relkind <> 'p' as inherited
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.oid = to_regclass($1)::oid and a.attname = $2 and not a.attisdropped`

/**
 * What is wrong with the column that names rows. Two rows of one id would count as one: the second is never sent, and is told the
 * outcome of the first. So the catalog has to say that there are none; where it cannot (a view, a foreign table, a table
 * partitioned by another column), the description must promise it.
 */
export async function findIdProblems(db: Database, qualified: string, table: OutboxTable): Promise<string[]> {
  const { id, idPromised } = table
  const { rows } = await db.query<IdState>(stateSql, [qualified, id])
  const [state] = rows
  if (state === undefined) return []
  const { kind, notNull, unique, inherited } = state
  const isCertain = unique && !inherited
  const catalogCan = (kind === 'r' || kind === 'm') && !inherited
  if (isCertain && (notNull || kind === 'm')) return []
  if (!catalogCan && idPromised) return []
  if (!catalogCan)
    return [`${cannotSay(kind, inherited)} that "${id}" is unique: if it is, promise it (id_unique: promised)`]
  const quoted = `"${id}"`
  return [
    isCertain
      ? null
      : `has no unique index on exactly ${quoted}, and two rows of one id would count as one: ${create(qualified, id)}, or name another column as id`,
    notNull || kind === 'm' ? null : `allows NULL in ${quoted}, by which rows are known: make it not null`,
  ].filter((problem) => problem !== null)
}

const create = (qualified: string, id: string) => `create unique index concurrently on ${qualified} ("${id}")`

function cannotSay(kind: string, inherited: boolean): string {
  if (inherited) return 'has tables that inherit from it, so that no index can say'
  return kind === 'p' ? 'is partitioned by another column, so that no index says' : 'is no table, so that no index says'
}
