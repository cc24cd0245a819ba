import { readFileSync } from 'node:fs'
import { FilesInvalid } from '../../yaml/fileProblem.ts'
import { optionsSchema, type SandboxSettings } from '../sandboxSettings.ts'
import { parseSettings } from '../settingsWrong.ts'
import { readScenario } from './readScenario.ts'
import { type Scenario, type ScenarioInput, scenarioSchema } from './scenarioSchema.ts'

/**
 * Reads a scenario.
 *
 * @param given the name of a file, or the scenario itself
 * @throws FilesInvalid with everything that is wrong with the file, by line and column; SettingsWrong for an object
 */
export function openScenario(given: string | ScenarioInput | undefined): Scenario | undefined {
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
