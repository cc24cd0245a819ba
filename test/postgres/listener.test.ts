import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { type Listener, openListener } from '../../src/postgres/listener.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const channel = 'outboxd_outbox'
const insert = `insert into outbox (type, payload) values ('data', '{}')`

async function setup() {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const open = (url = database.url) => {
    let notices = 0
    const onNotice = () => {
      notices += 1
    }
    const listener = openListener({
      url,
      channel,
      table: 'public."outbox"',
      onNotice,
      onError: () => {},
    })
    onTestFinished(() => listener.close())
    return Object.assign(listener, { notices: () => notices })
  }
  /** Opens a listener and waits until it is connected, which counts as a notice. */
  const ready = async () => {
    const listener = open()
    await until(listener.notices, (count) => count === 1)
    return listener
  }
  const writer = async () => {
    const client = await database.pool.connect()
    onTestFinished(() => client.release())
    return client
  }
  return { database, pool: database.pool, open, ready, writer }
}

/** Counts the notifications that PostgreSQL delivers to a second listener. */
async function eavesdrop(url: string): Promise<() => number> {
  const client = new pg.Client(url)
  await client.connect()
  onTestFinished(() => client.end())
  let heard = 0
  client.on('notification', () => {
    heard += 1
  })
  await client.query(`listen ${channel}`)
  return () => heard
}

const becomes = (listener: Listener, wanted: string) =>
  until(
    () => listener.setSleepFlag(),
    (result) => result === wanted,
  )

test('while sessions insert all the time, only the first insert after a sleep notifies', async () => {
  const { database, pool, ready } = await setup()
  const heard = await eavesdrop(database.url)
  const listener = await ready()
  await pool.query(insert)
  expect(await listener.setSleepFlag()).toBe('set')
  await pool.query(insert)
  await until(listener.notices, (count) => count === 2)
  const marks = () =>
    pool.query(`select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock'
      and database = (select oid from pg_database where datname = current_database())`)
  await until(marks, ({ rowCount }) => rowCount === 0)
  for (let i = 0; i < 20; i++) await pool.query(insert)
  await becomes(listener, 'set')
  await pool.query(insert)
  await until(listener.notices, (count) => count === 3)
  await until(heard, (count) => count >= 2)
  expect(heard()).toBe(2)
})

test.each([
  'drop trigger outbox_wakes_outboxd on outbox',
  'alter table outbox disable trigger user',
])('without a trigger that notifies, the daemon does not count on it: %s', async (change) => {
  const { pool, ready } = await setup()
  const listener = await ready()
  await pool.query(change)
  expect(await listener.setSleepFlag()).toBe('unavailable')
})

test('if an insert began before the sleep, the daemon looks once more', async () => {
  const { ready, writer } = await setup()
  const listener = await ready()
  const early = await writer()
  await early.query(`begin; ${insert}`)
  expect(await listener.setSleepFlag()).toBe('writers')
  await early.query('commit')
  expect(await listener.setSleepFlag()).toBe('set')

  const late = await writer()
  await late.query(`begin; ${insert}`)
  listener.clearSleepFlag()
  expect(await listener.setSleepFlag()).toBe('set') // its COMMIT will notify, because its insert saw the sleep flag
  await late.query('commit')
  await until(listener.notices, (count) => count === 2)
})

test('of two daemons one sleeps for both, and both are woken', async () => {
  const { pool, ready } = await setup()
  const [one, two] = [await ready(), await ready()]
  expect(await one.setSleepFlag()).toBe('set')
  expect(await one.setSleepFlag()).toBe('asleep')
  expect(await two.setSleepFlag()).toBe('unavailable')
  await pool.query(insert)
  await until(
    () => one.notices() + two.notices(),
    (count) => count === 4,
  )
  await becomes(two, 'set') // after the first daemon's session has released the flag
  await two.close()
  await becomes(one, 'set')
})

test('the sleep flag cannot be set without a table or a connection', async () => {
  const { pool, open, ready, database } = await setup()
  const away = open('postgres://nobody@127.0.0.1:1/nowhere')
  expect(await away.setSleepFlag()).toBe('unavailable')
  const listener = await ready()
  await pool.query('alter table outbox rename to gone')
  expect(await listener.setSleepFlag()).toBe('unavailable')
  await pool.query('alter table gone rename to outbox')
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outboxd listen' and datname = $1`,
    [new URL(database.url).pathname.slice(1)],
  )
  await becomes(listener, 'set') // on a new connection
})

test('migrating again does not lock the table', async () => {
  const { database, writer } = await setup()
  const busy = await writer()
  await busy.query('begin; update outbox set key = null') // this lock prevents any change of the table
  expect(await migrateOutbox(database.url, 'outbox')).toEqual({ hasWakeTrigger: true, preparedMax: 0 })
})
