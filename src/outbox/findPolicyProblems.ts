import type { Database } from '../postgres/database.ts'
import type { OutboxTable } from './outboxTable.ts'

/**
 * Row-level security without a policy for what we do hides every row from it, without an error: without one for our selects
 * the outbox looks empty, without one for our updates no row would ever be captured, or none ever be told.
 */
export async function findPolicyProblems(db: Database, qualified: string, table: OutboxTable): Promise<string[]> {
  const { isActive, role, allows } = await readPolicies(db, qualified)
  if (!isActive) return []
  const missing = [
    ...(allows.select ? [] : [{ verb: 'see', command: 'select' }]),
    ...(allows.update || (table.state === null && table.write.length === 0)
      ? []
      : [{ verb: 'update', command: 'update' }]),
  ]
  return missing.map(
    ({ verb, command }) =>
      `has row-level security, and no policy lets ${role} ${verb} rows: create policy outboxd_${command} on ${qualified} for ${command} to ${role} using (…)`,
  )
}

/** What a policy hides cannot be counted by whom it is hidden from. */
export async function findPolicyRemarks(db: Database, qualified: string): Promise<string[]> {
  const { isActive, role } = await readPolicies(db, qualified)
  if (!isActive) return []
  return [
    `the table has row-level security that holds for ${role}: the daemon neither sends nor counts rows that no policy shows it. Make sure that a policy shows it every row to send`,
  ]
}

interface Policies {
  /** For us: owners, superusers and whoever bypasses it see all. */
  isActive: boolean
  /** Ours, quoted. */
  role: string
  /** Whether any policy applies to what we do. */
  allows: { select: boolean; update: boolean }
}

async function readPolicies(db: Database, qualified: string): Promise<Policies> {
  const { rows } = await db.query<{ isActive: boolean; role: string; select: boolean; update: boolean }>(
    `select row_security_active(c.oid) as "isActive", pg_catalog.quote_ident(current_user) as role,
       coalesce(bool_or(p.polcmd in ('r', '*')), false) as "select", coalesce(bool_or(p.polcmd in ('w', '*')), false) as "update"
     from pg_class c left join pg_policy p on p.polrelid = c.oid and p.polpermissive
       and exists (select from unnest(p.polroles) r where r = 0 or pg_has_role(r, 'usage'))
     where c.oid = to_regclass($1)::oid group by c.oid`,
    [qualified],
  )
  const { isActive = false, role = '', select = false, update = false } = rows[0] ?? {}
  return { isActive, role, allows: { select, update } }
}
