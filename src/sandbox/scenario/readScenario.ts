import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { z } from 'zod'
import { isObject, type PayloadValue, writeJson } from '../../yaml/exactJson.ts'
import { explainSchemaIssue } from '../../yaml/schemaProblem.ts'
import { FilesInvalid, YamlDocument, type YamlPath } from '../../yaml/yamlDocument.ts'
import { readExactNumbers } from '../endpoints/parseExactly.ts'
import type { Faults } from '../faults/faults.ts'
import { optionsSchema, type SandboxSettings } from '../sandboxSettings.ts'
import { parseSettings } from '../settingsWrong.ts'
import { readOrCreateState, writeState } from '../storage/sandboxSchema.ts'
import { type Scenario, scenarioSchema } from './scenarioSchema.ts'

type Issue = z.core.$ZodIssue

/** @throws FilesInvalid with all problems, by line and column */
export function readScenario(file: string, text: string): Scenario {
  const document = new YamlDocument(file, text)
  const { content } = document
  const checked = content === undefined ? undefined : scenarioSchema.safeParse(readExactNumbers(writeJson(content)))
  for (const issue of checked?.error?.issues ?? []) report(document, issue, [], content ?? null)
  if (checked?.success && document.problems.length === 0) return checked.data
  throw new FilesInvalid([...document.problems].sort((a, b) => a.line - b.line || a.column - b.column))
}

/** Of alternatives, reports only the intended one. */
function report(document: YamlDocument, issue: Issue, within: YamlPath, content: PayloadValue): void {
  const path = [...within, ...(issue.path as YamlPath)]
  const meant = issue.code === 'invalid_union' ? meantAlternative(issue.errors) : undefined
  if (meant) {
    for (const inner of meant) report(document, inner, path, content)
    return
  }
  const kinds = 'options' in issue ? issue.options : undefined
  if (issue.code === 'invalid_format' || (issue.code === 'invalid_union' && kinds === undefined)) {
    document.report(path, `${nameOf(path)} ${issue.message}`)
    return
  }
  const plain = kinds ? { ...issue, code: 'invalid_value', values: kinds } : issue
  for (const problem of explainSchemaIssue({ ...plain, path } as Issue, content, keysAt(path, content))) {
    if (problem.key) document.reportKey(problem.path, problem.message)
    else document.report(problem.path, problem.message)
  }
}

/** The first alternative whose errors lie inside it. */
function meantAlternative(alternatives: readonly Issue[][]): Issue[] | undefined {
  return alternatives.find((issues) =>
    issues.every(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
  )
}

function nameOf(path: YamlPath): string {
  const name = path.at(-1)
  return typeof name === 'number' ? `item ${name + 1}` : `"${name}"`
}

interface JsonSchema {
  properties?: Record<string, JsonSchema>
  additionalProperties?: JsonSchema | boolean
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  const?: unknown
}

function keysAt(path: YamlPath, content: PayloadValue): string[] {
  let schemas = [z.toJSONSchema(scenarioSchema, { io: 'input', unrepresentable: 'any' }) as JsonSchema]
  let value: PayloadValue | undefined = content
  for (const step of path) {
    schemas = schemas.flatMap(({ properties, additionalProperties, items }) => {
      const next = typeof step === 'number' ? items : (properties?.[step] ?? additionalProperties)
      return typeof next === 'object' ? alternatives(next) : []
    })
    value = memberOf(value, step)
    schemas = ofKind(schemas, value)
  }
  return schemas.flatMap(({ properties }) => Object.keys(properties ?? {}))
}

function alternatives(schema: JsonSchema): JsonSchema[] {
  return [schema.anyOf, schema.oneOf].some(Array.isArray)
    ? [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap(alternatives)
    : [schema]
}

function ofKind(schemas: JsonSchema[], value: PayloadValue | undefined): JsonSchema[] {
  if (value === undefined || !isObject(value)) return schemas
  const named = schemas.filter(({ properties }) => properties?.kind?.const === value.kind && value.kind !== undefined)
  return named.length > 0 ? named : schemas
}

function memberOf(value: PayloadValue | undefined, step: string | number): PayloadValue | undefined {
  if (Array.isArray(value) && typeof step === 'number') return value[step]
  return value !== undefined && isObject(value) && Object.hasOwn(value, step) ? value[String(step)] : undefined
}

/** @param given a file name, or the scenario @throws FilesInvalid for a file, SettingsWrong for an object */
export function loadScenario(given: string | object | undefined): Scenario | undefined {
  if (given === undefined) return undefined
  return typeof given === 'string'
    ? readScenario(given, readText(given))
    : parseSettings(scenarioSchema, given, ['scenario'])
}

/** The scenario's settings win. @throws SettingsWrong if they contradict each other */
export function mergeScenario(settings: SandboxSettings, scenario: Scenario | undefined): SandboxSettings {
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

/** Begins a scenario, unless the database has already begun the same one. */
export async function continueScenario(pool: pg.Pool, faults: Faults, scenario: Scenario | undefined): Promise<void> {
  const mark = markOf(scenario)
  if ((await readOrCreateState<string | null>(pool, 'scenario', null)) !== mark)
    await beginScenario(pool, faults, scenario)
}

export async function beginScenario(pool: pg.Pool, faults: Faults, scenario: Scenario | undefined): Promise<void> {
  await pool.query('delete from sandbox.scripted_answers')
  await faults.removeAll(null)
  for (const fault of scenario?.faults ?? []) await faults.add(fault)
  await writeState(pool, 'scenario', markOf(scenario))
}

function markOf(scenario: Scenario | undefined): string | null {
  return scenario === undefined ? null : createHash('sha256').update(JSON.stringify(scenario)).digest('hex')
}
