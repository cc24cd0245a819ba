import type { CaptureTrouble } from '../model.ts'
import type { Database } from '../postgres/database.ts'

/** Reads what change capture notes, where it is installed and we may see it: an error in the ERP's log would be told every time. */
export async function readCaptureTrouble(db: Database): Promise<CaptureTrouble[]> {
  const { rows } = await db.query<{ readable: boolean }>(
    `select exists (select from pg_class c join pg_namespace s on s.oid = c.relnamespace
       where s.nspname = 'outboxd_capture' and c.relname = 'trouble'
         and has_schema_privilege(s.oid, 'usage') and has_table_privilege(c.oid, 'select')) as readable`,
  )
  if (!rows[0]?.readable) return []
  const trouble = await db.query<CaptureTrouble>(
    `select table_name as table, notes::float8 as notes, has_unknown as "hasUnknown",
       to_char(since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since, reason
     from outboxd_capture.trouble order by table_name, reason limit 100`,
  )
  return trouble.rows
}
