import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { command as migrate } from '../../src/commands/migrate.ts'
import { wakeTriggerMessage } from '../../src/operations/databaseMessages.ts'
import { inspectOutboxTable, migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { openListener } from '../../src/postgres/listener.ts'
import { testContext } from '../support/context.ts'
import { type EmbeddedPostgres, startPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'

/** On such a server the ERP may use two-phase commit. */
describe('if max_prepared_transactions is above 0', () => {
  let server: EmbeddedPostgres
  let client: pg.Client
  beforeAll(async () => {
    server = await startPostgres({ max_prepared_transactions: '5', fsync: 'off' })
    client = new pg.Client(server.url)
    await client.connect()
  })
  afterAll(async () => {
    await client?.end()
    await server?.stop()
  })
  beforeEach(() => client.query('drop table if exists outbox cascade'))

  const prepare = async () => {
    await client.query(`begin; insert into outbox (type, payload) values ('data', '{}')`)
    try {
      await client.query(`prepare transaction 'one'`)
      await client.query(`commit prepared 'one'`)
    } catch (error) {
      await client.query('rollback')
      throw error
    }
  }
  const sleep = async (wanted = 'set') => {
    const onNotice = () => {}
    const listener = openListener({
      url: server.url,
      channel: 'outboxd_outbox',
      table: 'public.outbox',
      onNotice,
      onError() {},
    })
    await until(
      () => listener.setSleepFlag(),
      (result) => result === wanted,
    )
    return listener
  }

  test('migrate creates no trigger, so that the ERP can prepare transactions', async () => {
    expect(await migrateOutbox(server.url, 'outbox')).toEqual({ hasWakeTrigger: false, preparedMax: 5 })
    const listener = await sleep('unavailable')
    await prepare()
    await listener.close()
    const table = await inspectOutboxTable(client, 'outbox')
    expect(table).toMatchObject({ hasWakeTrigger: false, preparedMax: 5 })
    expect(wakeTriggerMessage(table)).toMatch(/max_prepared_transactions is 5.*migrate --outbox --wake/)
  })

  test('--wake creates the trigger, which fails PREPARE TRANSACTION only while the daemon sleeps; --no-wake removes it', async () => {
    const run = async (wake: boolean | undefined) => {
      const context = testContext({ DATABASE_URL: server.url })
      expect(await migrate.action(context, { outbox: true, ...(wake === undefined ? {} : { wake }) })).toBe(0)
      return context.messages()
    }
    expect(await run(true)).toMatch(
      /max_prepared_transactions is 5, so the ERP may use PREPARE TRANSACTION, which fails.*--no-wake/,
    )
    await prepare()
    const listener = await sleep()
    await expect(prepare()).rejects.toThrow('NOTIFY')
    expect(await run(false)).toContain('rows wait up to a second')
    await prepare()
    await listener.close()
  })

  test('a trigger function of another role is refused, because it would run with each writer’s rights', async () => {
    await migrateOutbox(server.url, 'outbox', true)
    await client.query('create role stranger; alter function outboxd_wake() owner to stranger')
    await expect(migrateOutbox(server.url, 'outbox', true)).rejects.toThrow('belongs to a role that does not own')
    await client.query('alter table outbox owner to stranger')
    await migrateOutbox(server.url, 'outbox', true)
    await client.query('drop owned by stranger cascade; drop role stranger')
  })

  test('a prepared transaction does not block inserts, and the daemon does not sleep until it ends', async () => {
    await migrateOutbox(server.url, 'outbox', true)
    await client.query(`begin; insert into outbox (type, payload) values ('data', '{}'); prepare transaction 'slow'`)
    await client.query(`insert into outbox (type, payload) values ('data', '{}')`)
    const onNotice = () => {}
    const listener = openListener({
      url: server.url,
      channel: 'outboxd_outbox',
      table: 'public.outbox',
      onNotice,
      onError() {},
    })
    await until(
      () => listener.setSleepFlag(),
      (result) => result === 'writers',
    )
    await client.query(`commit prepared 'slow'`)
    expect(await listener.setSleepFlag()).toBe('set')
    await listener.close()
  })
})

test('the message names each kind of trigger', () => {
  expect(wakeTriggerMessage({ hasWakeTrigger: true, preparedMax: 0 })).toBe('inserts wake a sleeping daemon')
  expect(wakeTriggerMessage({ hasWakeTrigger: false, preparedMax: 0 })).toContain('rows wait up to a second')
})
