import { expect, test } from 'vitest'
import { setup } from './setup.ts'

/** Opens a foreign table. */
async function farTable(state: string) {
  const given = await setup({
    yaml: `table: far\nid: id\nid_unique: promised\ntype: { constant: data }\npayload: payload\nstate: ${state}\n`,
  })
  const { hostname, port, pathname, username, password } = new URL(given.url)
  await given.pool.query(`create table near (id bigint primary key, payload jsonb, taken boolean default false);
    create extension postgres_fdw;
    create server there foreign data wrapper postgres_fdw
      options (host '${hostname}', port '${port}', dbname '${pathname.slice(1)}');
    create user mapping for current_user server there options (user '${username}', password '${password}');
    create foreign table far (id bigint not null, payload jsonb, taken boolean) server there options (table_name 'near')`)
  return given
}

test('a foreign table without marks is refused', async () => {
  const { outbox, capture, pool } = await farTable('none\nsequence: id')
  await pool.query(`insert into near (id, payload) values (5, '{}')`)
  await expect(outbox.readIdentity()).rejects.toThrow(
    /is a view or a foreign table, in which a row that commits late would be missed.*with a DATABASE_URL that leads to its database/,
  )
  await expect(capture()).rejects.toThrow(/is a view or a foreign table/)
})

test('a foreign table whose rows are marked on capture is served, even a later row with a lower id', async () => {
  const { pool, capture } = await farTable('{ flag: taken, set: [queued] }')
  await pool.query(`insert into near (id, payload) values (5, '{}')`)
  expect(await capture()).toEqual(['5'])
  await pool.query(`insert into near (id, payload) values (3, '{}'), (7, '{}')`)
  expect(await capture()).toEqual(['3', '7'])
  expect(await capture()).toEqual([])
})
