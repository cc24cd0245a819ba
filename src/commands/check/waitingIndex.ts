import type pg from 'pg'
import { type OutboxTable, qualifiedNameSql } from '../../outbox/outboxTable.ts'
import { addTableSchemaIfFound } from '../../outbox/readTableShape.ts'
import { waitsSql } from '../../outbox/stateForms.ts'
import { type Finding, makeFinding } from './finding.ts'

/** Warns if no index begins with the column that says whether a row waits, or has it in its condition. */
export async function checkIndexOfWaitingRows(erp: pg.Pool, table: OutboxTable): Promise<Finding[]> {
  const { state, id } = table
  if (state === null) return []
  const qualified = qualifiedNameSql(await addTableSchemaIfFound(erp, table))
  const { rows } = await erp.query<{ isIndexed: boolean; columnSql: string; idSql: string }>(
    `select c.relkind not in ('r', 'p') or exists (
         select from pg_index i where i.indrelid = c.oid and i.indisvalid and (i.indkey[0] = a.attnum
           or i.indpred is not null and exists (select from pg_depend d where d.classid = 'pg_class'::regclass
             and d.objid = i.indexrelid and d.refobjid = c.oid and d.refobjsubid = a.attnum))) as "isIndexed",
       quote_ident(a.attname) as "columnSql", quote_ident($3) as "idSql"
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = $2
     where c.oid = to_regclass($1)::oid`,
    [qualified, state.column, id],
  )
  const [found] = rows
  if (found === undefined || found.isIndexed) return []
  const statement = `create index concurrently on ${qualified} (${found.idSql}) where ${waitsSql(state, found.columnSql)}`
  return [
    makeFinding(
      'index',
      'warning',
      `no index finds the rows that wait, so each search for them reads the whole table: ${statement}`,
    ),
  ]
}
