import { expect, test } from 'vitest'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { mayHaveWaitingRows } from '../../src/outbox/readRows.ts'
import { rests, setup } from './setup.ts'

/** Rows that come into a table with a partition or an inheriting table. Their transactions ended long before. */

const columns = `id bigint not null, payload jsonb default '{}', synced_at timestamptz`
const yaml = `
table: source
id: id
id_unique: promised
type: { constant: data }
payload: payload
state: { timestamp: synced_at, set: [completed] }`
const forms = {
  'a partition that is attached': {
    ddl: `create table source (${columns}) partition by range (id); create table first partition of source for values from (1) to (100);
      create table later (${columns})`,
    attach: 'alter table source attach partition later for values from (100) to (200)',
  },
  'a table that comes to inherit': {
    ddl: `create table source (${columns}); create table first () inherits (source); create table later (${columns})`,
    attach: 'alter table later inherit source',
  },
}

for (const [name, { ddl, attach }] of Object.entries(forms)) {
  test(`after a filled table is added (${name}), each of its rows is captured once`, async () => {
    const { pool, capture, outbox } = await setup({ ddl, yaml })
    await pool.query('insert into later (id) values (100), (101)')
    await pool.query('insert into source (id) values (1)')
    expect(await capture()).toEqual(['1'])
    await rests({ capture, outbox })
    await pool.query(attach)
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 2 })
    expect(await mayHaveWaitingRows(outbox)).toBe(true)
    expect(await capture()).toEqual(['100', '101'])
    await rests({ capture, outbox })
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 0 })
  })
}
