import pg from 'pg'
import { command as migrate } from '../../src/commands/migrate.ts'
import { testContext } from './context.ts'

type Env = Record<string, string> & { DATABASE_URL: string }

/**
 * Makes a role by executing what `migrate --print-grants` prints, as the owner.
 *
 * @returns the environment of the role: it differs in DATABASE_URL
 */
export async function grantRole(
  { env, pool }: { env: Env; pool: pg.Pool },
  role: string,
  options: { readOnly?: boolean },
): Promise<Env> {
  const context = testContext(env)
  const exitCode = await migrate.action(context, { printGrants: role, ...options })
  if (exitCode !== 0) throw new Error(context.messages())
  await pool.query(context.printed())
  await pool.query(`alter role ${pg.escapeIdentifier(role)} password 'x'`)
  const url = Object.assign(new URL(env.DATABASE_URL), { username: encodeURIComponent(role), password: 'x' })
  return { ...env, DATABASE_URL: url.href }
}

export async function dropRole(pool: pg.Pool, role: string): Promise<void> {
  const name = pg.escapeIdentifier(role)
  await pool.query(`drop owned by ${name}; drop role ${name}`)
}
