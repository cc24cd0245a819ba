import { expect, test } from 'vitest'
import { readBacklog } from '../../src/outbox/backlog.ts'
import { mayHaveWaitingRows, readWaitingRows } from '../../src/outbox/readRows.ts'
import { rests, setup } from './setup.ts'

/** A changed outbox.yaml includes rows that the former one left out. */

const ddl = `create table source (id bigint generated always as identity primary key, status text default 'released',
  payload jsonb default '{}', synced_at timestamptz)`
const common = 'table: source\nid: id\ntype: { constant: data }\npayload: payload\n'
const completed = 'state: { timestamp: synced_at, set: [completed] }\n'
const forms = {
  'a filter': {
    before: `${completed}filter: status = 'released'\n`,
    after: `${completed}filter: status in ('released', 'draft')\n`,
  },
  'the values of waiting rows': {
    before: 'state: { status: status, new: released, completed: done }\n',
    after: 'state: { status: status, new: [released, draft], completed: done }\n',
  },
}

for (const [name, { before, after }] of Object.entries(forms)) {
  test(`${name}: rows that a changed outbox.yaml includes are counted and captured, and no row twice`, async () => {
    const given = await setup({ ddl, yaml: `${common}${before}` })
    await given.pool.query(
      `insert into source (status) values ('draft'), ('draft'), ('draft'), ('released'), ('released')`,
    )
    expect(await given.capture()).toEqual(['4', '5'])
    await rests(given)
    const { outbox, capture } = given.describedAs(`${common}${after}`)
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 3 })
    expect(await mayHaveWaitingRows(outbox)).toBe(true)
    expect((await readWaitingRows(outbox, 10)).map(({ outboxId }) => outboxId)).toEqual(['1', '2', '3'])
    expect(await capture()).toEqual(['1', '2', '3'])
    await rests({ capture, outbox })
    expect(await readBacklog(outbox)).toMatchObject({ waiting: 0 })
  })
}
