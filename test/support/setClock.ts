import type pg from 'pg'

const deadlock = '40P01'

/**
 * Sets the database's clock back as seen by stored times, because the clock of a running Postgres cannot be set: moves
 * each time that the ledger and the queue have stored into the future. Not moved are the append-only logs, the times of
 * outbox rows, which the ERP wrote, and times compared with them. Nor are the minutes of request counts, because a minute
 * moved onto another is refused.
 */
export async function setClockBack(pool: pg.Pool, ms: number): Promise<void> {
  const { rows } = await pool.query<{ table: string; column: string }>(
    `select format('%I.%I', table_schema, table_name) as table, column_name as column
     from information_schema.columns join information_schema.tables using (table_schema, table_name)
     where table_type = 'BASE TABLE' and data_type = 'timestamp with time zone' and is_generated = 'NEVER' and column_name <> 'recorded_at'
       and (table_schema = 'outboxd' and table_name not in ('submission_event', 'operator_act')
         or table_schema = 'outboxd_jobs' and table_name = 'job')
       and not exists (
         select from information_schema.key_column_usage k
         where (k.table_schema, k.table_name, k.column_name) = (columns.table_schema, columns.table_name, columns.column_name)
       )`,
  )
  const byTable = Map.groupBy(rows, ({ table }) => table)
  const moves = [...byTable].map(([table, columns]) => {
    const later = columns.map(({ column }) => `"${column}" = "${column}" + interval '${ms} ms'`)
    if (table === 'outboxd.ledger') later.push('written_by = pg_current_xact_id()') // whose trigger is off, too
    if (table === 'outboxd_jobs.job') later.push(`priority = priority - ${Math.round(ms / 1_000)}`) // the second when it is due
    return `update ${table} set ${later.join(', ')};`
  })
  // In one transaction; the trigger that notes when a pause was set would undo half of it.
  const move = `rollback; begin; set local session_replication_role = replica; ${moves.join(' ')} commit`
  // Every row of every table, beside a daemon that goes on: the one of the two whom Postgres picks tries again,
  // on a session that may still be in what failed.
  await pool.query(move).catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== deadlock) throw error
    return setClockBack(pool, ms)
  })
}
