import type pg from 'pg'

/** What outlives a restart besides the ledger and its effects; one row each. */
export type StateName =
  | 'signing_key'
  | 'token_generation'
  | 'token_generations'
  | 'settings'
  | 'client_settings'
  | 'clock'
  | 'scenario'

/** Reads a value, or stores `first` and reads that; of two that start at once, both read the same. */
export async function readOrCreateState<T>(pool: pg.Pool, name: StateName, first: T): Promise<T> {
  await pool.query('insert into sandbox.state (name, value) values ($1, $2) on conflict (name) do nothing', [
    name,
    JSON.stringify(first),
  ])
  const { rows } = await pool.query<{ value: T }>('select value from sandbox.state where name = $1', [name])
  return rows[0]?.value ?? first
}

export async function writeState(pool: pg.Pool, name: StateName, value: unknown): Promise<void> {
  await pool.query(
    'insert into sandbox.state (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    [name, JSON.stringify(value)],
  )
}
