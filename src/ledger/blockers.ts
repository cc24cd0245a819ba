import type { Database } from '../postgres/database.ts'

/**
 * The processes of the server whose locks the daemons wait for; not those of daemons, which wait in turn.
 *
 * @returns their ids, for pg_terminate_backend; 0 stands for a prepared transaction
 */
export async function readBlockers(db: Database): Promise<number[]> {
  const { rows } = await db.query<{ pid: number }>(
    `select distinct blocker.pid from pg_stat_activity waiting, unnest(pg_blocking_pids(waiting.pid)) blocker (pid)
     where waiting.application_name = 'outboxd' and waiting.datname = current_database()
       and waiting.wait_event_type = 'Lock' and not exists (
         select from pg_stat_activity ours where ours.pid = blocker.pid and ours.application_name = 'outboxd'
       )
     order by pid`,
  )
  return rows.map(({ pid }) => pid)
}
