import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { command as check } from '../../src/commands/check.ts'
import { command as config } from '../../src/commands/config.ts'
import { startConnectProxy } from '../support/connectProxy.ts'
import { testContext } from '../support/context.ts'
import { startDaemonProcess } from '../support/daemon.ts'
import { scrape } from '../support/scrape.ts'
import { statusSays } from '../support/statusSays.ts'
import { until } from '../support/until.ts'
import { setup } from './faults/harness.ts'

test("the proxy's password changes: all goes through that proxy only, no password is shown", async () => {
  await using harness = await setup()
  await using proxy = await startConnectProxy({ kind: 'authenticated', user: 'me', password: 'hunter1' })
  await using trap = await startConnectProxy({ kind: 'refuse', status: 500 })
  const folder = mkdtempSync(join(tmpdir(), 'proxy-'))
  const file = join(folder, 'proxy')
  const give = (password: string) => writeFileSync(file, `${proxy.url.replace('//', `//me:${password}@`)}\n`)
  give('hunter1')
  const others = { HTTPS_PROXY: trap.url, HTTP_PROXY: trap.url, all_proxy: trap.url, NODE_USE_ENV_PROXY: '1' }
  const env = { ...harness.env, ...others, SERVICE_PROXY_FILE: file }
  await using daemon = await startDaemonProcess(env)
  const logged = (part: string) => daemon.line((line) => line.includes(part))
  const { port } = JSON.parse(await logged('"event":"listening"'))
  expect(await logged('go through a proxy')).toContain(new URL(proxy.url).host)
  await harness.insert('first-')
  await harness.becomes('first-', 'completed')

  const { port: servicePort } = new URL(harness.env.SERVICE_BASE_URL ?? '')
  expect(new Set(proxy.asked())).toEqual(new Set([`127.0.0.1:${servicePort}`]))
  const checked = testContext(env)
  await check.action(checked, {})
  expect(checked.printed()).toContain(`go through the proxy at ${new URL(proxy.url).host}`)
  expect(checked.printed()).toContain('accepts the token and answers')

  proxy.treat({ kind: 'authenticated', user: 'me', password: 'hunter2' })
  await harness.insert('second-')
  await until(harness.pauses, (pauses) => pauses.includes('unreachable'))
  const says = await statusSays(env)
  expect(says).toMatch(/the proxy wants a user name and a password.*SERVICE_PROXY/s)
  give('hunter2')
  await logged('SERVICE_PROXY changed')
  const { posts, steps } = await harness.becomes('second-', 'completed')
  expect(posts).toHaveLength(1)
  expect(steps.join()).not.toContain('uncertain')

  const effective = testContext(env)
  await config.action(effective, { effective: true })
  const told = [
    says,
    await scrape({ port }),
    daemon.lastLines(),
    checked.printed(),
    checked.messages(),
    effective.printed(),
  ]
  expect(told.join('\n')).not.toMatch(/hunter|me:/)
  expect(trap.asked()).toEqual([])
})

test("a host cannot look up its proxy's name: only that host's daemon pauses, and `status` names the host's fault", async () => {
  await using harness = await setup()
  await using _ = await startDaemonProcess({ ...harness.env, SERVICE_PROXY: 'http://nowhere.invalid:3128' })
  await harness.insert('waits-')
  const says = await until(
    () => statusSays(harness.env),
    (printed) => printed.includes('its host lacks what requests need'),
  )
  expect(says).toContain('this host cannot look up the proxy’s name')
  expect(await harness.pauses()).toEqual([])
  await harness.start()
  await harness.becomes('waits-', 'completed')
  await harness.insert('goes-')
  const { steps, effects } = await harness.becomes('goes-', 'completed')
  expect([effects, steps.join().includes('uncertain')]).toEqual([1, false])
  expect(await harness.pauses()).toEqual([])
})
