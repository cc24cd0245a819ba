import type pg from 'pg'
import { until } from './until.ts'

type Run = (text: string) => Promise<pg.QueryResult>

/**
 * Has every COMMIT wait for synchronous standbys of these names; '' for none.
 *
 * @param run on a session whose own COMMITs wait for nobody
 * @param look on a session that is to have heard of it
 */
export async function waitForStandby(names: string, run: Run, look = run): Promise<void> {
  await run(`alter system set synchronous_standby_names = '${names}'`)
  await run('select pg_reload_conf()')
  await until(
    () => look('show synchronous_standby_names'),
    ({ rows }) => rows[0].synchronous_standby_names === names,
  )
}
