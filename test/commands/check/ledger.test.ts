import { rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { command as check } from '../../../src/commands/check.ts'
import { setup as startSandbox } from '../../sandbox/setup.ts'
import { openForFile } from '../../support/openForFile.ts'
import { serviceEnvironment } from '../../support/serviceEnvironment.ts'
import { openFixture } from '../fixture.ts'

const fixture = openForFile(openFixture)
const service = openForFile(() => startSandbox())

/** Puts /dev/full in the place of the empty files of `outboxd.problem`, so that Postgres gets ENOSPC for each page. */
async function fillDisk(): Promise<void> {
  const { rows } = await fixture.ledger.pool.query<{ folder: string; file: string }>(
    `select current_setting('data_directory') as folder, pg_relation_filepath(oid) as file from pg_class
     where oid = 'outboxd.problem'::regclass
       or oid = (select reltoastrelid from pg_class where oid = 'outboxd.problem'::regclass)`,
  )
  expect(rows).toHaveLength(2)
  for (const { folder, file } of rows) {
    await rm(join(folder, file))
    await symlink('/dev/full', join(folder, file))
  }
}

test('`check` says that the disk of the ledger is full, in the words of Postgres, and before that nothing', async () => {
  await fixture.reset()
  const run = async () => {
    const context = fixture.context(null, serviceEnvironment(service.sandbox.url))
    return { code: await check.action(context, {}), printed: context.printed() }
  }
  expect(await run()).toMatchObject({ code: 0, printed: expect.stringMatching(/^ok {7}ledger: /m) })
  await fixture.ledger.pool.query('truncate outboxd.problem') // new empty files, of which no page is cached
  await fillDisk()
  const { code, printed } = await run()
  expect(printed).toMatch(
    /^PROBLEM {2}ledger: the ledger refuses a trial write, .*: could not extend file .*: No space left on device \(53100\)\. If the disk/m,
  )
  expect(code).toBe(1)
})
