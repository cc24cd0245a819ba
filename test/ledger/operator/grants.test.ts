import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { allowedChangesByTable, readLedgerPrivilegeStatements } from '../../../src/ledger/operator/grants.ts'
import { createDatabase } from '../../support/database.ts'
import { openForFile } from '../../support/openForFile.ts'
import { checkout } from '../../support/program.ts'

const database = openForFile(() => createDatabase())

/** The tables of `outboxd` that statements in `src` change, with how. */
function changesInSource(): Map<string, Set<string>> {
  const changes = new Map<string, Set<string>>()
  const note = (table: string, act: string) => changes.set(table, (changes.get(table) ?? new Set()).add(act))
  for (const file of readdirSync(join(checkout, 'src'), { recursive: true, encoding: 'utf8' })) {
    // The owner migrates, not the daemon.
    if (!file.endsWith('.ts') || /^(sandbox|demo|ledger\/migrations)\b/.test(file)) continue
    const text = readFileSync(join(checkout, 'src', file), 'utf8')
    for (const { 0: all, 1: verb = '', 2: table = '', index } of text.matchAll(
      /\b(insert into|update|delete from) outboxd\.(\w+)/g,
    )) {
      const statement = text.slice(index + all.length, text.indexOf('`', index))
      note(`outboxd.${table}`, verb.split(' ')[0] ?? '')
      if (verb === 'insert into' && statement.includes('do update')) note(`outboxd.${table}`, 'update')
    }
  }
  return changes
}

test('the daemon’s role may change exactly what statements in the source change', () => {
  const granted = Object.entries(allowedChangesByTable).filter(([table]) => table.startsWith('outboxd.'))
  expect(Object.fromEntries(granted.map(([table, { acts }]) => [table, acts.toSorted()]))).toEqual(
    Object.fromEntries([...changesInSource()].map(([table, acts]) => [table, [...acts].sort()])),
  )
})

test('every table in the list of allowed changes exists', async () => {
  const { rows } = await database.pool.query<{ missing: string }>(
    'select name as missing from unnest($1::text[]) name where to_regclass(name) is null',
    [Object.keys(allowedChangesByTable)],
  )
  expect(rows).toEqual([])
})

test('a role with more rights than it needs loses them', async () => {
  const role = `wide_${randomBytes(4).toString('hex')}`
  const { pool } = database
  await pool.query(`create role ${role} login; grant usage on schema outboxd, outboxd_jobs to ${role};
    grant select, insert, update, delete on all tables in schema outboxd to ${role};
    grant select, insert, update, delete on all tables in schema outboxd_jobs to ${role}`)
  try {
    const statements = await readLedgerPrivilegeStatements(pool, role, 'run')
    expect(statements.filter((statement) => /^revoke delete on .*outboxd\.ledger/.test(statement))).toHaveLength(1)
    for (const statement of statements) await pool.query(statement)
    const held = await pool.query<{ table: string; acts: string[] }>(
      `select c.oid::regclass::text as table, array_agg(lower(a.privilege_type) order by a.privilege_type) as acts
       from pg_class c cross join aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
       where r.rolname = $1 and c.relkind in ('r', 'p', 'v') and a.privilege_type <> 'SELECT' group by c.oid`,
      [role],
    )
    expect(Object.fromEntries(held.rows.map(({ table, acts }) => [table, acts]))).toEqual(
      Object.fromEntries(Object.entries(allowedChangesByTable).map(([table, { acts }]) => [table, acts.toSorted()])),
    )
    expect(
      (await readLedgerPrivilegeStatements(pool, role, 'run')).filter((statement) => statement.startsWith('revoke')),
    ).toEqual([])
    expect(
      (await readLedgerPrivilegeStatements(pool, role, 'read')).filter((statement) => statement.startsWith('revoke')),
    ).not.toEqual([])
  } finally {
    await pool.query(`drop owned by ${pg.escapeIdentifier(role)}; drop role ${pg.escapeIdentifier(role)}`)
  }
})
