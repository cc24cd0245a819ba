import { expect, onTestFinished, test } from 'vitest'
import { findRowSecurityRemarks } from '../../src/outbox/findTableProblems.ts'
import { Outbox } from '../../src/outbox/outbox.ts'
import { createPool } from '../../src/postgres/database.ts'
import { type Setup, setup, tableOf } from './setup.ts'

/** Row-level security can hide rows without any error. */

const columns = `id bigint generated always as identity primary key, payload jsonb default '{}', taken boolean default false`
const yaml = 'table: source\nid: id\ntype: { constant: data }\npayload: payload\n'

/** The outbox as seen by a role that is subject to row-level security. */
async function asClerk({ url, pool }: Setup, state: string) {
  const name = new URL(url).pathname.slice(1)
  const role = `clerk_${name.slice(5)}`
  await pool.query(`create role ${role} login; grant select, update on source to ${role};
    alter table source enable row level security; alter database ${name} set role = '${role}'`)
  onTestFinished(() => pool.query(`set role none; drop owned by ${role}; drop role ${role}`).then(() => {}))
  const clerks = createPool({ url, name: 'x', connections: 1, onIdleError: () => {} })
  onTestFinished(() => clerks.end())
  return new Outbox(clerks, tableOf(`${yaml}${state}`), 1_000, pool)
}

test('row-level security without a policy for us is refused, and with one it is remarked', async () => {
  const given = await setup({ ddl: `create table source (${columns})` })
  const outbox = await asClerk(given, 'state: none\nsequence: id')
  await expect(outbox.readIdentity()).rejects.toThrow(
    /no policy lets clerk_\S+ select rows: create policy outboxd_select on/,
  )
  await given.pool.query('set role none; create policy visible on source for select using (id > 1)')
  expect(await findRowSecurityRemarks(outbox.pool, 'source')).toEqual([
    expect.stringContaining('has row-level security'),
  ])
})

test('a table with only a policy for updates, or only one for selects, is refused', async () => {
  const given = await setup({ ddl: `create table source (${columns})` })
  const outbox = await asClerk(given, 'state: { flag: taken, set: [queued] }')
  await given.pool.query('set role none; create policy visible on source for update using (true)')
  await expect(outbox.readIdentity()).rejects.toThrow(/no policy lets clerk_\S+ select rows/)
  await given.pool.query(
    'set role none; drop policy visible on source; create policy visible on source for select using (true)',
  )
  await expect(outbox.readIdentity()).rejects.toThrow(/no policy lets clerk_\S+ update rows/)
})
