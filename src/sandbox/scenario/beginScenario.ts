import { createHash } from 'node:crypto'
import type pg from 'pg'
import type { Faults } from '../faults/faults.ts'
import { readOrCreateState, writeState } from '../storage/sandboxState.ts'
import type { Scenario } from './scenarioSchema.ts'

/**
 * Begins a scenario unless the database is in the middle of this very one: a sandbox that starts again goes on where it was.
 *
 * @param scenario undefined for none
 */
export async function continueScenario(pool: pg.Pool, faults: Faults, scenario: Scenario | undefined): Promise<void> {
  const mark = markOf(scenario)
  if ((await readOrCreateState<string | null>(pool, 'scenario', null)) !== mark)
    await beginScenario(pool, faults, scenario)
}

/** Switches on the faults of the scenario in the place of all others; scripts are told from their beginning. */
export async function beginScenario(pool: pg.Pool, faults: Faults, scenario: Scenario | undefined): Promise<void> {
  await pool.query('delete from sandbox.scripted_answers')
  await faults.removeAll(null)
  for (const fault of scenario?.faults ?? []) await faults.add(fault)
  await writeState(pool, 'scenario', markOf(scenario))
}

function markOf(scenario: Scenario | undefined): string | null {
  return scenario === undefined ? null : createHash('sha256').update(JSON.stringify(scenario)).digest('hex')
}
