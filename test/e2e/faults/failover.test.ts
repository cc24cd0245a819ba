import { onTestFinished, test } from 'vitest'
import { migrateAll, startPostgres } from '../../support/postgres.ts'
import { until } from '../../support/until.ts'
import { setup } from './harness.ts'

test('a primary becomes read-only: completed on the new one', async () => {
  const server = await startPostgres({ fsync: 'off' })
  onTestFinished(server.stop)
  await migrateAll(server.url)
  const harness = await setup({}, server.url)
  onTestFinished(() => harness[Symbol.asyncDispose]())
  await harness.start()
  await harness.insert('before-')
  await harness.becomes('before-', 'completed')
  // Open sessions take the server's setting, new sessions the database's, as if a proxy led to a new primary.
  await harness.pool.query('alter database postgres set default_transaction_read_only = off')
  await harness.pool.query('alter system set default_transaction_read_only = on')
  await harness.pool.query('select pg_reload_conf()')
  await until(
    () =>
      harness.pool.query('create temp table probe ()').then(
        () => 'written',
        (error: { code: string }) => error.code,
      ),
    (written) => written === 'written', // this pool has left its old sessions by now, too
  )
  for (const marker of ['after-1-', 'after-2-', 'after-3-']) {
    await until(
      () => harness.insert(marker).catch(() => null),
      (id) => id !== null,
    )
  }
  for (const marker of ['after-1-', 'after-2-', 'after-3-']) await harness.becomes(marker, 'completed')
})
