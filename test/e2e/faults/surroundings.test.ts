import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readMetric } from '../../support/scrape.ts'
import { until } from '../../support/until.ts'
import { setup, through } from './harness.ts'

/** Metrics of the databases, of outcomes that are not written back yet, and of certificates. */

test('the database is away: `database_up` says so', async () => {
  await using harness = await setup()
  const daemon = await harness.start({ DATABASE_URL: through(harness.postgres, harness.env.DATABASE_URL) })
  const becomes = (wanted: number) =>
    until(
      () => readMetric(daemon, 'outboxd_database_up'),
      (up) => up === wanted,
    )
  await becomes(1)
  await harness.postgres.setFault({ kind: 'refuse' })
  await becomes(0)
  await harness.postgres.setFault(null)
  await becomes(1)
})

test('metrics count outcomes that are not written back, and say since when', async () => {
  await using harness = await setup()
  const daemon = await harness.start()
  await harness.pool.query(`alter table outbox add constraint never_done check (status <> 'completed') not valid`)
  await harness.insert('refused-')
  await until(
    () => readMetric(daemon, 'outboxd_oldest_report_due_timestamp_seconds'),
    (oldest) => Math.abs(oldest - Date.now() / 1_000) < 60,
  )
})

test('metrics show when certificates end', async () => {
  await using harness = await setup()
  const file = (name: string) => join(import.meta.dirname, '..', '..', 'service', 'tls', name)
  const daemon = await harness.start({
    SERVICE_CERT_FILE: file('cert.pem'),
    SERVICE_KEY_FILE: file('key.pem'),
    SERVICE_CA_FILE: file('cert.pem'),
  })
  const expiry = (certificate: string) =>
    readMetric(daemon, `outboxd_certificate_expiry_timestamp_seconds{certificate="${certificate}"}`)
  const end = Date.parse('2126-10-28T00:26:50Z') / 1_000
  expect([await expiry('client'), await expiry('ca'), await expiry('service')]).toEqual([end, end, 0])
})
