import type { Database } from '../database.ts'
import type { OutboxTable } from './outboxTable.ts'

/**
 * Row-level security without a policy for our updates hides every row from them and from our locks, without an error: no
 * row would ever be captured, or none ever be told.
 */
export async function findPolicyProblems(db: Database, qualified: string, table: OutboxTable): Promise<string[]> {
  if (table.state === null && table.write.length === 0) return []
  const { rows } = await db.query<{ hidden: boolean; role: string }>(
    `select row_security_active(c.oid) and not exists (
         select from pg_policy p where p.polrelid = c.oid and p.polpermissive and p.polcmd in ('w', '*')
           and exists (select from unnest(p.polroles) r where r = 0 or pg_has_role(r, 'usage'))
       ) as hidden, quote_ident(current_user) as role
     from pg_class c where c.oid = to_regclass($1)`,
    [qualified],
  )
  const [state] = rows
  if (!state?.hidden) return []
  return [
    `has row-level security, and no policy lets ${state.role} update rows: create policy outboxd on ${qualified} for update to ${state.role} using (…)`,
  ]
}
