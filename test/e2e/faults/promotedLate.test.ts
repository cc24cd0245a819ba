import { expect, onTestFinished, test } from 'vitest'
import { recover } from '../../../src/commands/recover.ts'
import { testContext } from '../../support/context.ts'
import { migrateAll } from '../../support/postgres.ts'
import { startReplicas } from '../../support/replicas.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { waitForStandby } from '../../support/waitForStandby.ts'
import { setup } from './harness.ts'

/** What looks like the synchronous standby, and is not: an attacker had all of it sent twice. */

test('a standby that lagged behind is promoted, or one after which no daemon lives: it does not go on by itself', async () => {
  const replicas = await startReplicas()
  onTestFinished(() => replicas[Symbol.asyncDispose]())
  await migrateAll(replicas.clientUrl)
  const harness = await setup({ idempotency: 'ignore' }, replicas.clientUrl)
  onTestFinished(() => harness[Symbol.asyncDispose]())
  let { primary } = replicas
  const says = () => statusSays(harness.env)
  const isTrusted = () =>
    until(
      () => primary.run('select from outboxd.history where synchronous_until > clock_timestamp()'),
      ({ rowCount }) => rowCount === 1,
    )
  const late = await replicas.addStandby(primary, 'late')
  await replicas.addStandby(primary, 'sync')
  await waitForStandby('sync', primary.run)
  const daemon = await harness.start()
  await harness.insert('late-before-')
  await harness.becomes('late-before-', 'completed')
  await isTrusted()

  await late.link.setFault({ kind: 'refuse' })
  await primary.run('create table others_commit as select generate_series(1, 1000) as n')
  const { rows } = await primary.run('select clock_timestamp() as at')
  await until(
    () =>
      primary.run(
        `select marked_at > '${rows[0].at.toISOString()}'::timestamptz + interval '7 s' as later from outboxd.history`,
      ),
    ({ rows: [row] }) => row.later,
  )
  await primary.kill()
  await late.standby.promote()
  await replicas.redirect(late.standby)
  primary = late.standby
  await until(says, (text) => text.includes('ended before what a daemon had seen'))
  expect(await recover(testContext(harness.env), { as: 'new', yes: true })).toBe(0)

  const { standby } = await replicas.addStandby(primary, 'next')
  await waitForStandby('next', primary.run)
  await isTrusted()
  await harness.insert('late-between-')
  await harness.becomes('late-between-', 'completed')
  await daemon.stop()
  await primary.kill()
  await standby.promote()
  await replicas.redirect(standby)
  await harness.start()
  await until(says, (text) => text.includes('no daemon has lived through it'))
  expect(await recover(testContext(harness.env), { as: 'new', yes: true })).toBe(0)
}, 180_000)
