import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type pg from 'pg'
import type { z } from 'zod'
import { toPlainValue } from '../../yaml/exactJson.ts'
import { FilesInvalid, wholeFile, YamlDocument, type YamlPath } from '../../yaml/yamlDocument.ts'
import type { FaultStore } from '../faults/faults.ts'
import { optionsSchema, parseSettings, type SandboxSettings } from '../sandboxSettings.ts'
import { readOrCreateState, writeState } from '../storage/sandboxSchema.ts'
import { type Scenario, scenarioSchema } from './scenarioSchema.ts'

type Issue = z.core.$ZodIssue

/** @throws FilesInvalid with all problems, sorted by line and column */
export function parseScenarioText(file: string, text: string): Scenario {
  const document = new YamlDocument(file, text)
  const { content } = document
  const checked = content === undefined ? undefined : scenarioSchema.safeParse(toPlainValue(content))
  for (const issue of checked?.error?.issues ?? []) report(document, issue, [])
  if (checked?.success && document.problems.length === 0) return checked.data
  throw new FilesInvalid([...document.problems].sort((a, b) => a.line - b.line || a.column - b.column))
}

/** If a value may have several forms, reports only errors of the first form whose errors are all inside the value. */
function report(document: YamlDocument, issue: Issue, within: YamlPath): void {
  const path = [...within, ...(issue.path as YamlPath)]
  if (issue.code === 'unrecognized_keys') {
    for (const key of issue.keys) document.reportKey([...path, key], `unknown key "${key}"`)
    return
  }
  const meant = issue.code === 'invalid_union' ? issue.errors.find((issues) => issues.every(isInside)) : undefined
  if (meant === undefined || meant.length === 0) document.report(path, `"${path.at(-1) ?? ''}": ${issue.message}`)
  for (const inner of meant ?? []) report(document, inner, path)
}

function isInside({ path, code }: Issue): boolean {
  return path.length > 0 || code === 'unrecognized_keys'
}

/** @param given a file name, or the scenario @throws FilesInvalid for a wrong file, SettingsWrong for a wrong object */
export function loadScenario(given: string | object | undefined): Scenario | undefined {
  if (given === undefined) return undefined
  return typeof given === 'string'
    ? parseScenarioText(given, readText(given))
    : parseSettings(scenarioSchema, given, ['scenario'])
}

/** The scenario's settings win. @throws SettingsWrong if the result is not valid */
export function applyScenarioSettings(settings: SandboxSettings, scenario: Scenario | undefined): SandboxSettings {
  if (scenario === undefined) return settings
  const { clock, clients, customers, settings: changes } = scenario
  const given = Object.entries({ clock, clients, unknownCustomers: customers?.unknown, ...changes })
  const said = given.filter(([, value]) => value !== undefined)
  return parseSettings(optionsSchema, { ...settings, ...Object.fromEntries(said) })
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const message = `the file cannot be read: ${(error as Error).message}`
    throw new FilesInvalid([{ file, message, ...wholeFile }])
  }
}

/** Starts the scenario, unless the database has started the same one before. */
export async function ensureScenarioStarted(
  pool: pg.Pool,
  faults: FaultStore,
  scenario: Scenario | undefined,
): Promise<void> {
  const mark = markOf(scenario)
  if ((await readOrCreateState<string | null>(pool, 'scenario', null)) !== mark)
    await startScenario(pool, faults, scenario)
}

export async function startScenario(pool: pg.Pool, faults: FaultStore, scenario: Scenario | undefined): Promise<void> {
  await pool.query('delete from sandbox.scripted_answers')
  await faults.removeAll(null)
  for (const fault of scenario?.faults ?? []) await faults.add(fault)
  await writeState(pool, 'scenario', markOf(scenario))
}

function markOf(scenario: Scenario | undefined): string | null {
  return scenario === undefined ? null : createHash('sha256').update(JSON.stringify(scenario)).digest('hex')
}
