import { expect, onTestFinished, test } from 'vitest'
import { LedgerMismatch, LedgerRegistration } from '../../src/outbox/ledgerRegistration.ts'
import { createFixedDatabaseAddress } from '../../src/postgres/databaseAddress.ts'
import { openPool, startPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'

/** `open` registers a ledger for one outbox table of the server. */
async function openRegistrations(url: string) {
  const pool = openPool(url)
  onTestFinished(() => pool.end())
  await pool.query('create table outbox (id bigint)')
  const open = (ledger: string) => {
    const registration = new LedgerRegistration({
      address: createFixedDatabaseAddress(url),
      table: 'outbox',
      readTable: async () => 'public.outbox',
      readLedgerName: async () => ledger,
      onError: () => {},
    })
    onTestFinished(() => registration.close())
    return registration
  }
  return { pool, open }
}

test('after a restart of the server, a daemon of another ledger is still refused', async () => {
  await using server = await startPostgres()
  const { open } = await openRegistrations(server.url)
  const served = open('ours')
  await served.ensureRegistered()
  await server.restartImmediately()
  const refused = await until(
    () =>
      open('another')
        .ensureRegistered()
        .then(
          () => 'let in',
          (error: unknown) => error,
        ),
    (outcome) => outcome === 'let in' || outcome instanceof LedgerMismatch,
  )
  expect(refused).toBeInstanceOf(LedgerMismatch)
  await served.ensureRegistered()
})

test('another ledger is refused even while the registered daemon’s session is terminated again and again', async () => {
  await using server = await startPostgres()
  const { pool, open } = await openRegistrations(server.url)
  const served = open('ours')
  await served.ensureRegistered()
  const { rows } = await pool.query<{ name: string }>(
    `select application_name as name from pg_stat_activity where starts_with(application_name, 'outboxd registration')`,
  )
  const newcomer = open('another').ensureRegistered()
  let isOver = false
  const ending = newcomer.catch(() => {}).finally(() => (isOver = true))
  while (!isOver)
    await pool.query(
      'select pg_terminate_backend(pid), pg_sleep(2) from pg_stat_activity where application_name = $1',
      [rows[0]?.name],
    )
  await ending
  await expect(newcomer).rejects.toThrow(LedgerMismatch)
  await served.ensureRegistered()
})
