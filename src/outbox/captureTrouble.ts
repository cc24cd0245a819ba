import type { CaptureTrouble } from '../model.ts'
import type { Database } from '../postgres/database.ts'

/**
 * Reads what change capture notes and what is wrong with its installation; nothing if it is not installed.
 *
 * The view `trouble` is asked only if our role may read it: an error would stand in the ERP's log each time. The catalog says who may
 * use the trigger functions, also of 0.2 and before, whose view knows nothing of that.
 */
export async function readCaptureTrouble(db: Database): Promise<CaptureTrouble[]> {
  const { rows } = await db.query<{ readable: boolean; insecure: string[] }>(
    `select coalesce(bool_or(has_schema_privilege(s.oid, 'usage') and has_table_privilege(c.oid, 'select')), false) as readable,
       array(
         select distinct coalesce(t.tgrelid::regclass::text, 'its functions') from pg_proc p left join pg_trigger t on t.tgfoid = p.oid
         where p.pronamespace = to_regnamespace('outboxd_capture') and p.prosecdef
           and ((select rolsuper from pg_roles where oid = p.proowner)
             or exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) where grantee = 0))
       ) as insecure
     from pg_class c join pg_namespace s on s.oid = c.relnamespace where s.nspname = 'outboxd_capture' and c.relname = 'trouble'`,
  )
  const { readable = false, insecure = [] } = rows[0] ?? {}
  const trouble = readable
    ? await db.query<CaptureTrouble>(
        `select table_name as table, notes::float8 as notes, has_unknown as "hasUnknown",
           to_char(since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since, reason, false as insecure
         from outboxd_capture.trouble order by table_name, reason limit 100`,
      )
    : { rows: [] }
  const unsafe = insecure.map((table) => ({
    table,
    notes: 0,
    hasUnknown: false,
    since: null,
    reason:
      'its trigger function lets other roles act with the rights of the role that installed it, a superuser’s perhaps',
    insecure: true,
  }))
  return [...unsafe, ...trouble.rows]
}
