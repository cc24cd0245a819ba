import type pg from 'pg'

/** The rows of all tables in the ledger's schemas, and the positions of their sequences. */
export interface LedgerBackup {
  tables: { name: string; columns: string; rows: string }[]
  sequences: { name: string; position: string }[]
}

/** Reads the ledger's schemas as `pg_dump` does: everything as of one moment. */
export async function backUpLedger(pool: pg.Pool): Promise<LedgerBackup> {
  const client = await pool.connect()
  try {
    await client.query('begin isolation level repeatable read read only')
    const { rows: tables } = await client.query<{ name: string; columns: string }>(
      `select c.oid::regclass::text as name, (
         select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
         where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
       from pg_class c where relkind in ('r', 'p') and not relispartition
         and relnamespace::regnamespace::text in ('outboxd', 'outboxd_jobs') order by 1`,
    )
    const { rows: named } = await client.query<{ name: string }>(
      `select c.oid::regclass::text as name from pg_class c
       where relkind = 'S' and relnamespace::regnamespace::text in ('outboxd', 'outboxd_jobs')`,
    )
    const backup: LedgerBackup = { tables: [], sequences: [] }
    for (const table of tables) {
      const sql = `select coalesce(json_agg(t), '[]')::text as rows from (select ${table.columns} from ${table.name}) t`
      const { rows } = await client.query<{ rows: string }>(sql)
      backup.tables.push({ ...table, rows: rows[0]?.rows ?? '[]' })
    }
    for (const { name } of named) {
      const sql = `select format('%s, %L', last_value, is_called) as position from ${name}`
      const { rows } = await client.query<{ position: string }>(sql)
      backup.sequences.push({ name, position: rows[0]?.position ?? '' })
    }
    await client.query('commit')
    return backup
  } finally {
    client.release()
  }
}

/** Puts the ledger's rows back as `pg_restore --data-only` does, and nothing else in its database. */
export async function restoreLedger(pool: pg.Pool, { tables, sequences }: LedgerBackup): Promise<void> {
  const client = await pool.connect()
  try {
    // Where it meets a deadlock with a daemon, the daemon's statement ends, because Postgres ends who looks first.
    await client.query(`begin; set local session_replication_role = replica; set local deadlock_timeout = '1min'`)
    await client.query(`truncate ${tables.map(({ name }) => name).join(', ')}`)
    for (const { name, columns, rows } of tables)
      await client.query(
        `insert into ${name} (${columns}) overriding system value
         select ${columns} from json_populate_recordset(null::${name}, $1)`,
        [rows],
      )
    for (const { name, position } of sequences) await client.query(`select setval('${name}', ${position})`)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  } finally {
    client.release()
  }
}
