import { expect, inject, onTestFinished, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { testContext } from '../support/context.ts'
import { startDaemonProcess } from '../support/daemon.ts'
import { hasPgbouncer, type Pgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { statusSays } from '../support/statusSays.ts'
import { until } from '../support/until.ts'
import { type Harness, setup } from './faults/harness.ts'

if (!hasPgbouncer)
  console.info('pgbouncer is not installed: the tests behind it are skipped (apt-get install pgbouncer)')

/** pgbouncer in transaction mode: no setting, prepared statement, lock or LISTEN outlives a transaction. */
async function behindPgbouncer(ignored: string[] = []): Promise<Harness> {
  return (await behindCrashing(ignored)).harness
}

async function behindCrashing(
  ignored: string[] = [],
): Promise<{ harness: Harness; bouncer: Pgbouncer; directUrl: string }> {
  const bouncer = await startPgbouncer(inject('postgresUrl'), ignored)
  onTestFinished(() => bouncer[Symbol.asyncDispose]())
  const harness = await setup()
  onTestFinished(() => harness[Symbol.asyncDispose]())
  const directUrl = harness.env.DATABASE_URL ?? ''
  harness.env.DATABASE_URL = bouncer.through(directUrl)
  return { harness, bouncer, directUrl }
}

async function runCheck(harness: Harness): Promise<string> {
  const context = testContext(harness.env)
  await check.action(context, {})
  return context.printed()
}

test.skipIf(!hasPgbouncer).each([
  ['refuses our startup parameters', []],
  ['ignores our startup parameters', ['statement_timeout', 'idle_in_transaction_session_timeout', 'options']],
])('pgbouncer in transaction mode (%s): completed, once', async (_, ignored) => {
  const harness = await behindPgbouncer(ignored)
  await harness.start()
  const markers = Array.from({ length: 20 }, (_, i) => `bounced-${i}-`)
  for (const [i, marker] of markers.entries()) await harness.insert(marker, { key: `k${i % 3}` })
  const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))
  expect(outcomes.filter(({ effects, posts }) => effects !== 1 || posts.length !== 1)).toEqual([])
})

test.skipIf(!hasPgbouncer)(
  'check says if statements have no timeout behind the pooler, and how to set one',
  async () => {
    const harness = await behindPgbouncer(['statement_timeout', 'idle_in_transaction_session_timeout', 'options'])
    expect(await runCheck(harness)).toMatch(/alter role \S+ set statement_timeout = '20s'/)
    await harness.pool.query(`alter role postgres in database ${new URL(harness.env.DATABASE_URL ?? '').pathname.slice(1)}
    set statement_timeout = '20s'`)
    await harness.pool.query(`alter role postgres in database ${new URL(harness.env.DATABASE_URL ?? '').pathname.slice(1)}
    set idle_in_transaction_session_timeout = '10s'`)
    await harness.pool.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    const checked = await runCheck(harness)
    expect(checked).not.toMatch(/alter role/)
    expect(checked).not.toContain('inserts wake the daemon')
    expect(checked).toContain('through this pooler no insert wakes the daemon')
  },
)

test.skipIf(!hasPgbouncer)(
  'crashes of the pooler lose no record, and status does not blame the disk, a standby or other clients',
  async () => {
    const { harness, bouncer, directUrl } = await behindCrashing()
    const direct = { ...harness.env, DATABASE_URL: directUrl }
    const logged: string[] = []
    const daemon = await startDaemonProcess(harness.env, { onLine: (line) => logged.push(line) })
    onTestFinished(() => daemon[Symbol.asyncDispose]())
    const markers = Array.from({ length: 60 }, (_, i) => `crashed-${i}-`)
    const said: string[] = []
    for (const [i, marker] of markers.entries()) {
      await harness.insert(marker)
      if (i % 15 !== 10) continue
      await harness.becomes(`crashed-${i - 5}-`, 'completed', 'uncertain')
      await bouncer.crash()
      said.push(await statusSays(direct))
      await bouncer.restart()
      said.push(await statusSays(direct))
    }
    const outcomes = await Promise.all(markers.map((marker) => harness.becomes(marker, 'completed')))
    said.push(
      await until(
        () => statusSays(direct),
        (text) => text.startsWith('All is well'),
      ),
    )
    expect(outcomes.filter(({ effects }) => effects !== 1)).toEqual([])
    expect(said.filter((text) => /disk|standby|someone else/i.test(text))).toEqual([])
    expect(logged.filter((line) => line.includes('someone else spends'))).toEqual([])
  },
)
