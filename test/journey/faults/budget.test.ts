import { afterAll, beforeAll, test } from 'vitest'
import { until } from '../../support/until.ts'
import { type Daemon, type Rig, setup } from './rig.ts'

/** What the instances agree on, and what they say when they cannot. */

let rig: Rig
beforeAll(async () => {
  rig = await setup()
})
afterAll(() => rig[Symbol.asyncDispose]())

async function metric({ port }: Daemon, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const line = text.split('\n').find((each) => each.startsWith(`${name} `)) ?? ''
  return Number(line.slice(name.length))
}

test('instances with different limits: the smaller holds, the metrics say who differs, and it ends with the old one', async () => {
  const old = await rig.start({ RATE_LIMIT_REQUESTS: '200' })
  const fresh = await rig.start()
  const differ = () => metric(fresh, 'outboxd_problems{kind="settings_differ"}')
  await until(differ, (count) => count === 2)
  await until(
    () => metric(fresh, 'outboxd_rate_limit_capacity'),
    (requests) => requests === 200,
  )
  await old.stop()
  await until(differ, (count) => count === 0)
  await until(
    () => metric(fresh, 'outboxd_rate_limit_capacity'),
    (requests) => requests === 500,
  )
  await fresh.stop()
})
