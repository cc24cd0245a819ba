import type pg from 'pg'
import { until } from './until.ts'

type Run = (text: string) => Promise<pg.QueryResult>

/**
 * Lets every COMMIT wait for synchronous standbys with these names; '' for none.
 *
 * @param run runs SQL on a session whose COMMITs do not wait
 * @param look reads on a session that must already see the change
 */
export async function waitForStandby(names: string, run: Run, look = run): Promise<void> {
  await run(`alter system set synchronous_standby_names = '${names}'`)
  await run('select pg_reload_conf()')
  await until(
    () => look('show synchronous_standby_names'),
    ({ rows }) => rows[0].synchronous_standby_names === names,
  )
}
