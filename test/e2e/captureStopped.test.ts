import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { daemonEnvironment, startDaemonProcess } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { install } from './installation.ts'

/** Describes the table of `outboxd migrate --outbox`. */
const outboxYaml = readFileSync('mappings/examples/partner_view.yaml', 'utf8')
  .replace('table: outbox_a', 'table: outbox')
  .replace(/^id_unique.*\n/m, '')

// docs/run/operations.md, "Moving to another service"
test('with a filter that no row meets, open records end and new rows wait', async () => {
  const { pool, url, serviceUrl, mappingsDir } = await install({
    'data.yaml': readFileSync('mappings/data.yaml', 'utf8'),
    'outbox.yaml': outboxYaml,
  })
  const insert = (field2: string) =>
    pool.query(`insert into outbox (type, payload) values ('data', $1)`, [
      { customerId: 'C1', orderDate: '2026-11-20T10:00:00Z', amount: 1, field2 },
    ])
  const counts = async () => {
    const { rows } = await pool.query('select status, count(*)::int as n from outbox group by status')
    return Object.fromEntries(rows.map(({ status, n }) => [status, n]))
  }
  const env = daemonEnvironment(url, serviceUrl, { MAPPINGS_DIR: mappingsDir })
  const startWith = async (text: string) => {
    await writeFile(join(mappingsDir, 'outbox.yaml'), text)
    return startDaemonProcess({ ...env, RATE_LIMIT_REQUESTS: '30000' })
  }
  const first = await startWith(outboxYaml)
  for (let i = 0; i < 50; i++) await insert(`before ${i}`)
  await eventually(async () => expect(await counts()).not.toHaveProperty('new'))
  await first.stop()
  const second = await startWith(`${outboxYaml}filter: 'false'\n`)
  for (let i = 0; i < 5; i++) await insert(`after ${i}`)
  await eventually(async () => expect(await counts()).toEqual({ completed: 50, new: 5 }))
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  expect(await counts()).toEqual({ completed: 50, new: 5 })
  await second.stop()
  await using _ = await startWith(outboxYaml)
  await eventually(async () => expect(await counts()).toEqual({ completed: 55 }))
})
