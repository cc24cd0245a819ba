import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, type TestContext, test } from 'vitest'
import { assertMigrated, migrateLedger } from '../../src/ledger/migrations.ts'
import { migrateOutbox } from '../../src/outbox/migrateOutbox.ts'
import { copyProgram, type ProgramCopy } from '../../tools/crash/programCopy.ts'
import { createDatabase } from '../support/database.ts'
import { openLedger } from '../support/ledger.ts'

/** A migrated database in which another session holds a lock on a table. */
async function locked(table: string, { onTestFinished }: TestContext): Promise<string> {
  const database = await createDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const client = await database.pool.connect()
  await client.query(`begin; lock table ${table} in access exclusive mode`)
  onTestFinished(async () => {
    await client.query('rollback')
    client.release()
  })
  return database.url
}

test.concurrent.for<[name: string, table: string, migrate: (url: string) => Promise<unknown>]>([
  ['the ledger', 'outboxd.migration', migrateLedger],
  // Only a change of the table needs a lock on it: here, to remove the trigger.
  ['the outbox', 'outbox', (url: string) => migrateOutbox(url, 'outbox', false)],
])('a migration that meets a lock on a table of %s gives up and names the lock’s holder', async ([
  ,
  table,
  migrate,
], context) => {
  const url = await locked(table, context)
  await expect(migrate(url)).rejects.toThrow(
    /the database of DATABASE_URL .* another session held a lock .* pg_stat_activity/,
  )
})

describe('a second migration', () => {
  let program: ProgramCopy
  beforeAll(async () => {
    program = await copyProgram([])
    await writeFile(
      join(program.dir, 'migrations', '0002_invented.sql'),
      `alter table outboxd.pause add column invented integer;
       alter table outboxd.submission add column invented integer not null default 7`,
    )
  })
  afterAll(() => program[Symbol.asyncDispose]())
  async function setup() {
    const ledger = await openLedger()
    onTestFinished(() => ledger[Symbol.asyncDispose]())
    await ledger.capture([{}, {}])
    return {
      ...ledger,
      async migrate(...options: string[]) {
        const { code, stderr } = await program.start(['migrate', ...options], { DATABASE_URL: ledger.url }).ended()
        expect(code, stderr).toBe(0)
        return stderr.split('\n')[0]
      },
      readInvented: async () => (await ledger.pool.query('select invented from outboxd.submission')).rows,
    }
  }

  test('is named before it is applied, and applied once by two runs at the same time, to a ledger with rows', async () => {
    const { pool, url, migrate, readInvented } = await setup()
    expect(await migrate('--dry-run')).toBe('would apply 0002_invented')
    await expect(readInvented()).rejects.toThrow('does not exist')
    expect((await Promise.all([migrate(), migrate()])).sort()).toEqual([
      'applied 0002_invented',
      'the schemas outboxd and outboxd_jobs are up to date',
    ])
    expect(await readInvented()).toEqual([{ invented: 7 }, { invented: 7 }])
    await expect(assertMigrated(pool, url)).rejects.toThrow('newer version of outboxd (0002_invented)')
  })
})
