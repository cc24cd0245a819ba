import { readFileSync } from 'node:fs'
import type pg from 'pg'

/** The statements of deploy/change-capture/NAME.sql. */
export const captureFile = (name: 'install' | 'remove' | 'copy_state') =>
  readFileSync(`deploy/change-capture/${name}.sql`, 'utf8')

/** Runs install.sql as its own role, as the file asks superusers to. Tests of one server share `outboxd_capture`. */
export async function installCapture(pool: pg.Pool, role = 'outboxd_capture'): Promise<void> {
  await createRole(pool, role)
  await pool.query(`create schema if not exists outboxd_capture authorization ${role}`)
  await asInstaller(pool, captureFile('install'), role)
}

/** Creates a role without rights, unless another test has created it. */
export async function createRole(pool: pg.Pool, role: string): Promise<void> {
  await pool.query(
    `do $$begin create role ${role}; exception when duplicate_object or unique_violation then null; end$$`,
  )
}

/** Runs statements as the installing role, after granting it the rights that it needs on all tables. */
export async function asInstaller(pool: pg.Pool, sql: string, role = 'outboxd_capture'): Promise<pg.QueryResult> {
  const client = await pool.connect()
  try {
    await client.query(`do $$declare name text; begin
      for name in select quote_ident(nspname) from pg_namespace where nspname not like 'pg\\_%' and nspname not in ('information_schema', 'outboxd_capture') loop
        execute format('grant usage on schema %s to ${role}', name);
        execute format('grant select, insert, update, trigger on all tables in schema %s to ${role}', name);
      end loop;
    end$$`)
    await client.query(`set role ${role}`)
    return await client.query(sql)
  } finally {
    await client.query('rollback; reset role')
    client.release()
  }
}
