import { z } from 'zod'
import { isObject, type PayloadValue, writeJson } from '../../yaml/exactJson.ts'
import { explainIssue } from '../../yaml/schemaProblem.ts'
import { FilesInvalid, YamlDocument, type YamlPath } from '../../yaml/yamlDocument.ts'
import { readExactNumbers } from './exactNumbers.ts'
import { type Scenario, scenarioSchema } from './scenarioSchema.ts'

type Issue = z.core.$ZodIssue

/**
 * Checks the text of a scenario file. Pure.
 *
 * @param file how problems name it
 * @throws FilesInvalid with everything that is wrong with it, by line and column
 */
export function readScenario(file: string, text: string): Scenario {
  const document = new YamlDocument(file, text)
  const { content } = document
  const checked = content === undefined ? undefined : scenarioSchema.safeParse(readExactNumbers(writeJson(content)))
  for (const issue of checked?.error?.issues ?? []) report(document, issue, [], content ?? null)
  if (checked?.success && document.problems.length === 0) return checked.data
  throw new FilesInvalid([...document.problems].sort((a, b) => a.line - b.line || a.column - b.column))
}

/** Notes an issue; of alternatives, what is wrong with the one that was meant. */
function report(document: YamlDocument, issue: Issue, within: YamlPath, content: PayloadValue): void {
  const path = [...within, ...(issue.path as YamlPath)]
  const meant = issue.code === 'invalid_union' ? meantAlternative(issue.errors) : undefined
  if (meant) {
    for (const inner of meant) report(document, inner, path, content)
    return
  }
  const kinds = 'options' in issue ? issue.options : undefined // of faults, which are told apart by their kind
  if (issue.code === 'invalid_format' || (issue.code === 'invalid_union' && kinds === undefined)) {
    document.report(path, `${nameOf(path)} ${issue.message}`)
    return
  }
  const plain = kinds ? { ...issue, code: 'invalid_value', values: kinds } : issue
  for (const problem of explainIssue({ ...plain, path } as Issue, content, keysAt(path, content))) {
    if (problem.key) document.reportKey(problem.path, problem.message)
    else document.report(problem.path, problem.message)
  }
}

/** The first of which no more is wrong than something within it. */
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

/** The keys that may stand where a path leads, going by the published schema. */
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

/** Of schemas that are told apart by their kind, the one whose kind was written; all where none was. */
function ofKind(schemas: JsonSchema[], value: PayloadValue | undefined): JsonSchema[] {
  if (value === undefined || !isObject(value)) return schemas
  const named = schemas.filter(({ properties }) => properties?.kind?.const === value.kind && value.kind !== undefined)
  return named.length > 0 ? named : schemas
}

function memberOf(value: PayloadValue | undefined, step: string | number): PayloadValue | undefined {
  if (Array.isArray(value) && typeof step === 'number') return value[step]
  return value !== undefined && isObject(value) && Object.hasOwn(value, step) ? value[String(step)] : undefined
}
