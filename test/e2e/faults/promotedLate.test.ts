import { expect, onTestFinished, test } from 'vitest'
import { command as recover } from '../../../src/commands/recover.ts'
import { testContext } from '../../support/context.ts'
import { migrateAll } from '../../support/postgres.ts'
import { startReplicas } from '../../support/replicas.ts'
import { statusSays } from '../../support/statusSays.ts'
import { until } from '../../support/until.ts'
import { waitForStandby } from '../../support/waitForStandby.ts'
import { setup } from './harness.ts'

test('a lagging or undeclared standby is promoted: all stops', async () => {
  const replicas = await startReplicas()
  onTestFinished(() => replicas[Symbol.asyncDispose]())
  await migrateAll(replicas.clientUrl)
  const harness = await setup({ idempotency: 'ignore' }, replicas.clientUrl)
  onTestFinished(() => harness[Symbol.asyncDispose]())
  let { primary } = replicas
  const says = () => statusSays(harness.env)
  const late = await replicas.addStandby(primary, 'late')
  await replicas.addStandby(primary, 'sync')
  await waitForStandby('sync', primary.run)
  const declared = await harness.start({ LEDGER_STANDBY: 'synchronous' })
  await harness.insert('late-before-')
  await harness.becomes('late-before-', 'completed')

  await late.link.setFault({ kind: 'refuse' })
  await harness.insert('late-lost-')
  await harness.becomes('late-lost-', 'completed')
  await primary.kill()
  await late.standby.promote()
  await waitForStandby('', late.standby.run)
  await replicas.redirect(late.standby)
  primary = late.standby
  await until(says, (text) => text.includes('a record that a daemon had claimed is missing'))
  expect(await recover.action(testContext(harness.env), { as: 'uncertain', yes: true })).toBe(0)
  await declared.stop()

  await harness.start()
  const { standby } = await replicas.addStandby(primary, 'next')
  await waitForStandby('next', primary.run)
  await primary.kill()
  await standby.promote()
  await waitForStandby('', standby.run)
  await replicas.redirect(standby)
  await until(says, (text) => text.includes('a standby was promoted, or a backup recovered'))
  expect(await recover.action(testContext(harness.env), { as: 'new', yes: true })).toBe(0)
})
