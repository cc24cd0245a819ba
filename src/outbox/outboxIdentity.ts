import type { OutboxIdentity } from '../ledger/servedOutbox.ts'
import type { Database } from '../postgres/database.ts'

/** Which table it is. @param qualified quoted, with its schema where the description names one */
export async function readIdentity(db: Database, qualified: string, idColumn: string): Promise<OutboxIdentity> {
  const { rows } = await db.query<{ database: string; table: string }>(
    `select current_database()::text as database, n.nspname || '.' || c.relname as "table"
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass($1)::oid`,
    [qualified],
  )
  return { ...(rows[0] as (typeof rows)[0]), idColumn }
}
