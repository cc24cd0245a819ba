import { expect, onTestFinished, test } from 'vitest'
import { ForeignLedger, LedgerRegistration } from '../../src/outbox/ledgerRegistration.ts'
import { createFixedDatabaseAddress } from '../../src/postgres/databaseAddress.ts'
import { openPool, startPostgres } from '../support/postgres.ts'
import { until } from '../support/until.ts'

test('after a restart of the server the daemon that served comes back before one of another ledger', async () => {
  await using server = await startPostgres()
  const pool = openPool(server.url)
  onTestFinished(() => pool.end())
  await pool.query('create table outbox (id bigint)')
  const open = (ledger: string) => {
    const registration = new LedgerRegistration({
      address: createFixedDatabaseAddress(server.url),
      table: 'outbox',
      readTable: async () => 'public.outbox',
      readLedgerName: async () => ledger,
      onError: () => {},
    })
    onTestFinished(() => registration.close())
    return registration
  }
  const served = open('ours')
  await served.hold()
  await server.restartImmediately()
  const refused = await until(
    () =>
      open('another')
        .hold()
        .then(
          () => 'let in',
          (error: unknown) => error,
        ),
    (outcome) => outcome === 'let in' || outcome instanceof ForeignLedger,
  )
  expect(refused).toBeInstanceOf(ForeignLedger)
  await served.hold()
})
