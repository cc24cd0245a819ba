import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createDatabase } from '../../support/database.ts'
import { readMetric } from '../../support/scrape.ts'
import { until } from '../../support/until.ts'
import { setup, through } from './harness.ts'

/** Metrics of the databases, of outcomes that are not written back yet, and of certificates. */

test('one of two databases is away: `database_up` names it', async () => {
  await using ledger = await createDatabase()
  await using harness = await setup()
  const daemon = await harness.start({
    STATE_DATABASE_URL: ledger.url,
    DATABASE_URL: through(harness.postgres, harness.env.DATABASE_URL),
  })
  const up = async () => [
    await readMetric(daemon, 'outboxd_database_up{database="outbox"}'),
    await readMetric(daemon, 'outboxd_database_up{database="ledger"}'),
  ]
  const isSame = (wanted: number[]) => (seen: number[]) => String(seen) === String(wanted)
  await until(up, isSame([1, 1]))
  await harness.fault({ kind: 'delay', delayMs: 1_000, endpoint: 'submit' })
  await harness.insert('untold-')
  await until(
    () => ledger.pool.query(`select from outboxd.submission where state = 'sending'`),
    ({ rowCount }) => rowCount === 1,
  )
  await harness.postgres.setFault({ kind: 'refuse' })
  await until(up, isSame([0, 1]))
  // Meanwhile the metrics show what the ledger knows.
  await until(
    () => readMetric(daemon, 'outboxd_reports_due'),
    (due) => due === 1,
  )
  await until(
    () => readMetric(daemon, 'outboxd_submissions{state="completed"}'),
    (completed) => completed === 1,
  )
  await harness.postgres.setFault(null)
  await harness.control('DELETE', 'faults')
  await until(up, isSame([1, 1]))

  await harness.pool.query(`alter table outbox add constraint never_done check (status <> 'completed') not valid`)
  await harness.insert('refused-')
  await until(
    () => readMetric(daemon, 'outboxd_oldest_report_due_timestamp_seconds'),
    (oldest) => Math.abs(oldest - Date.now() / 1_000) < 60,
  )
  await harness.pool.query('alter table outbox drop constraint never_done')
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
