import type pg from 'pg'

/** Makes new sessions of this database read-only, as after a failover. Disposal ends that. */
export async function readOnly(pool: pg.Pool): Promise<AsyncDisposable> {
  const alter = (how: string) =>
    pool.query(
      `begin read write; do $$ begin execute format('alter database %I ${how}', current_database()); end $$; commit`,
    )
  await alter('set default_transaction_read_only = on')
  return { [Symbol.asyncDispose]: async () => void (await alter('reset default_transaction_read_only')) }
}
