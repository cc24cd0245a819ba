import { type Database, quoteIdentifier } from '../postgres/database.ts'
import { resolveTable } from './inspectTable.ts'
import { qualifiedName, splitTableName } from './outboxTable.ts'

/** The quoted names that belong to an outbox table of ours. @param name name, or schema.name, as OUTBOX_TABLE has it */
export function ownNamesOf(name: string): { qualified: string; trigger: string; index: string } {
  const split = splitTableName(name)
  return {
    qualified: qualifiedName(split),
    trigger: quoteIdentifier(`${split.table}_wakes_outboxd`),
    index: quoteIdentifier(`${split.table}_new`),
  }
}

/** What is there of the outbox table. */
export interface OutboxTableState {
  exists: boolean
  /** The trigger that announces new rows: where somebody sleeps, or (an earlier version's) always; not there, or switched off. */
  wakes: 'sleepers' | 'always' | 'never'
  /** The server's max_prepared_transactions: where it is above 0, somebody may use two-phase commit, which NOTIFY makes fail. */
  preparedMax: number
  columns: string[]
}

/** Looks at the outbox table's columns and its trigger. @param table name, or schema.name */
export async function inspectOutboxTable(db: Database, table: string): Promise<OutboxTableState> {
  const { rows } = await db.query<OutboxTableState>(
    `with t as (select to_regclass($1)::oid as id)
     select id is not null as exists,
       coalesce((select case when p.prosrc like '%pg_try_advisory%' then 'sleepers' else 'always' end
         from pg_trigger g join pg_proc p on p.oid = g.tgfoid
         where g.tgrelid = t.id and p.proname = 'outboxd_wake' and g.tgenabled <> 'D' limit 1), 'never') as wakes,
       current_setting('max_prepared_transactions')::int as "preparedMax",
       array(select attname::text from pg_attribute where attrelid = t.id and attnum > 0 and not attisdropped
         order by attnum) as columns
     from t`,
    [qualifiedName(await resolveTable(db, splitTableName(table)))],
  )
  return rows[0] ?? { exists: false, wakes: 'never', preparedMax: 0, columns: [] }
}
