import { expect, inject, onTestFinished, test } from 'vitest'
import { check } from '../../src/commands/check.ts'
import { testContext } from '../support/context.ts'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { type Rig, setup } from './faults/rig.ts'

if (!hasPgbouncer)
  console.info('pgbouncer is not installed: the tests behind it are skipped (apt-get install pgbouncer)')

/** A pooler that lends its sessions for one transaction each: no setting, prepared statement, lock or LISTEN outlives it. */
async function behindPgbouncer(ignored: string[] = []): Promise<Rig> {
  const bouncer = await startPgbouncer(inject('postgresUrl'), ignored)
  onTestFinished(() => bouncer[Symbol.asyncDispose]())
  const rig = await setup()
  onTestFinished(() => rig[Symbol.asyncDispose]())
  rig.env.DATABASE_URL = bouncer.through(rig.env.DATABASE_URL ?? '')
  return rig
}

async function runCheck(rig: Rig): Promise<string> {
  const context = testContext(rig.env)
  await check(context, {})
  return context.printed()
}

test.skipIf(!hasPgbouncer).each([
  ['refuses our startup parameters', []],
  ['ignores our startup parameters', ['statement_timeout', 'idle_in_transaction_session_timeout', 'options']],
])('a pgbouncer in transaction mode that %s carries records to their ends', async (_, ignored) => {
  const rig = await behindPgbouncer(ignored)
  await rig.start()
  const markers = Array.from({ length: 20 }, (_, i) => `bounced-${i}-`)
  for (const [i, marker] of markers.entries()) await rig.insert(marker, { key: `k${i % 3}` })
  const fates = await Promise.all(markers.map((marker) => rig.becomes(marker, 'completed')))
  expect(fates.filter(({ effects, posts }) => effects !== 1 || posts.length !== 1)).toEqual([])
})

test.skipIf(!hasPgbouncer)(
  'check says that statements have no limit of time there, and how to give them one',
  async () => {
    const rig = await behindPgbouncer(['statement_timeout', 'idle_in_transaction_session_timeout', 'options'])
    expect(await runCheck(rig)).toMatch(/alter role \S+ set statement_timeout = '20s'/)
    await rig.pool.query(`alter role postgres in database ${new URL(rig.env.DATABASE_URL ?? '').pathname.slice(1)}
    set statement_timeout = '20s'`)
    await rig.pool.query(`alter role postgres in database ${new URL(rig.env.DATABASE_URL ?? '').pathname.slice(1)}
    set idle_in_transaction_session_timeout = '10s'`)
    await rig.pool.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    expect(await runCheck(rig)).not.toMatch(/alter role/)
  },
)
