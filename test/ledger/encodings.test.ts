import { expect, onTestFinished, test } from 'vitest'
import { judgeEncoding } from '../../src/commands/check/servers.ts'
import { migrateLedger } from '../../src/ledger/migrations.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { readEncodingWarningClause } from '../../src/postgres/migrationSession.ts'
import { daemonEnvironment, startDaemon } from '../support/daemon.ts'
import { createDatabase } from '../support/database.ts'

/** Makes a database of an encoding that the templates do not have. */
async function databaseOf(encoding: string) {
  const database = await createDatabase('template0', `encoding '${encoding}' locale 'C'`)
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database
}

const bothWays = /SQL_ASCII.*restore it into a UTF8 database.*Or make a view of the outbox /

test('`migrate` refuses SQL_ASCII for the ledger and the outbox, and names both ways out', async () => {
  const { url, pool } = await databaseOf('SQL_ASCII')
  await expect(migrateLedger(url)).rejects.toThrow(bothWays)
  await expect(migrateOutbox(url, 'outbox')).rejects.toThrow(bothWays)
  const { rows } = await pool.query(
    `select from pg_class where relnamespace::regnamespace::text in ('public', 'outboxd')`,
  )
  expect(rows).toEqual([])
})

test('the daemon does not start in a SQL_ASCII database', async () => {
  const ascii = await databaseOf('SQL_ASCII')
  await ascii.pool.query('create table outbox (id bigint, type text, key text, payload text, status text)')
  const env = daemonEnvironment(ascii.url, 'http://127.0.0.1:9', { LOG_LEVEL: 'silent' })
  await expect(startDaemon(env)).rejects.toThrow(bothWays)
})

test('`migrate` warns of a LATIN1 database, and not of a UTF8 one', async () => {
  const [latin1, utf8] = [await databaseOf('LATIN1'), await databaseOf('UTF8')]
  expect(await readEncodingWarningClause(latin1.url)).toMatch(/LATIN1, not UTF8\. .*replaced in messages/)
  expect(await readEncodingWarningClause(utf8.url)).toBeNull()
})

test('`check` reports SQL_ASCII as a problem and LATIN1 as a warning', () => {
  expect(judgeEncoding('UTF8')).toBeNull()
  expect(judgeEncoding('LATIN1')).toMatchObject({ mark: 'warning', message: expect.stringContaining('is LATIN1') })
  expect(judgeEncoding('SQL_ASCII')).toMatchObject({ mark: 'problem', message: expect.stringContaining('SQL_ASCII') })
})
