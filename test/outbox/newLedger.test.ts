import { expect, test } from 'vitest'
import { OutboxTableUnusable } from '../../src/outbox/readTableShape.ts'
import { setup } from './setup.ts'

test('a new ledger is not bound to a table whose rows name transactions, until it knows them', async () => {
  const { outbox, pool, ledger } = await setup()
  await pool.query(`insert into outbox (type, payload, status, transaction_id)
    values ('data', '{}', 'new', null), ('data', '{}', 'accepted', 'tx-1'), ('data', '{}', 'new', ' ')`)
  const binding = outbox.bindLedger('daemon')
  await expect(binding).rejects.toThrow(OutboxTableUnusable)
  await expect(binding).rejects.toThrow(/row 2 of "outbox" names a transaction.*outboxd recover.*adopt --start/)
  expect((await ledger.query('select table_name from outboxd.ledger')).rows).toEqual([{ table_name: null }])
  await pool.query('update outbox set transaction_id = null')
  await outbox.bindLedger('daemon')
  await pool.query(`update outbox set transaction_id = 'tx-2'`)
  await outbox.bindLedger('daemon')
  expect((await ledger.query('select table_name from outboxd.ledger')).rows).toEqual([{ table_name: 'public.outbox' }])
})

test('a table to which no transaction is written is bound at once', async () => {
  const { outbox, pool, ledger } = await setup({
    ddl: 'create table events (seq bigint generated always as identity primary key, doc jsonb)',
    yaml: 'table: events\nid: seq\nsequence: seq\ntype: { constant: data }\npayload: doc\nstate: none',
  })
  await pool.query(`insert into events (doc) values ('{}')`)
  await outbox.bindLedger('daemon')
  expect((await ledger.query('select table_name from outboxd.ledger')).rows).toEqual([{ table_name: 'public.events' }])
})
