import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { FilesInvalid } from '../../yaml/yamlDocument.ts'
import type { Faults } from '../faults/faults.ts'
import { optionsSchema, type SandboxSettings } from '../sandboxSettings.ts'
import { parseSettings } from '../settingsWrong.ts'
import { readOrCreateState, writeState } from '../storage/sandboxState.ts'
import { readScenario } from './readScenario.ts'
import { type Scenario, scenarioSchema } from './scenarioSchema.ts'

/**
 * Reads a scenario.
 *
 * @param given the name of a file, or the scenario itself
 * @throws FilesInvalid with everything that is wrong with the file, by line and column; SettingsWrong for an object
 */
export function openScenario(given: string | object | undefined): Scenario | undefined {
  if (given === undefined) return undefined
  return typeof given === 'string'
    ? readScenario(given, readText(given))
    : parseSettings(scenarioSchema, given, ['scenario'])
}

/** The settings of a start as the scenario has them: what it says wins. @throws SettingsWrong where the two do not go together */
export function withScenario(settings: SandboxSettings, scenario: Scenario | undefined): SandboxSettings {
  if (scenario === undefined) return settings
  const { clock, clients, customers, settings: changes } = scenario
  const given = Object.entries({ clock, clients, unknownCustomers: customers?.unknown, ...changes })
  const said = given.filter(([, value]) => value !== undefined)
  return parseSettings(optionsSchema, { ...settings, ...Object.fromEntries(said) })
}

function readText(file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const reason = error instanceof TypeError ? 'it is not UTF-8 text' : (error as Error).message
    throw new FilesInvalid([{ file, line: 1, column: 1, message: `the file cannot be read: ${reason}` }])
  }
}

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
