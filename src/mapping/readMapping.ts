import type { z } from 'zod'
import { serviceResources } from '../resources.ts'
import { isObject, type PayloadObject, type PayloadValue, shortDigestOf, toPlainValue } from '../yaml/exactJson.ts'
import { explainSchemaIssue } from '../yaml/schemaProblem.ts'
import { type FileProblem, YamlDocument, type YamlPath } from '../yaml/yamlDocument.ts'
import { compileBody } from './compileBody.ts'
import { compileField } from './compileField.ts'
import { compilePath } from './compilePath.ts'
import type { DocumentTable, Field, ListColumn, Mapping, SourceQuery } from './mapping.ts'
import {
  documentSchema,
  explainTypeProblem,
  type FieldSpec,
  fieldNamePattern,
  fieldSchemas,
  mappingFileSchema,
  parseFieldTypeName,
} from './mappingSchema.ts'

/**
 * @param file the file's name in problems
 * @returns `mapping`: null if there are problems. `type` is set despite problems, because two files must not have the
 *   same type.
 */
export function readMapping(file: string, text: string) {
  const document = new YamlDocument(file, text)
  const { content } = document
  const mapping = content === undefined ? null : compileMapping(content, document)
  const type = content !== undefined && isObject(content) && typeof content.type === 'string' ? content.type : null
  return {
    mapping: document.problems.length === 0 ? mapping : null,
    type,
    problems: [...document.problems].sort((a, b) => a.line - b.line || a.column - b.column),
    repeatedTypeProblem: (firstFile: string): FileProblem =>
      document.problemAt(['type'], `"${type}" is already the type of ${firstFile}: one file per type`),
  }
}

function compileMapping(content: PayloadValue, document: YamlDocument): Mapping | null {
  const checked = mappingFileSchema.safeParse(toPlainValue(content))
  if (!checked.success) report(checked.error, [], content, Object.keys(mappingFileSchema.shape), document)
  if (!isObject(content)) return null

  const specs = Object.entries(objectOr(content.fields))
  const fields = specs.map(([name, spec]) => readField(name, spec, document))
  const names = specs.map(([name]) => name)
  const body = compileBody(objectOr(content.body), names, fields, document)
  for (const name of names) {
    if (isObject(content.body ?? null) && fieldNamePattern.test(name) && !body.used.has(name)) {
      document.reportKey(
        ['fields', name],
        `the body never uses "${name}": put \${${name}} into it, or remove the field`,
      )
    }
  }
  const table = readDocumentTable(content, document)
  if (!checked.success) return null
  const { list: _, ...sent } = content
  const compiled = fields.filter((field) => field !== null)
  return {
    type: checked.data.type,
    endpoint: checked.data.endpoint,
    track: checked.data.track ?? true,
    sendsSubmissionId: isSubmissionId(objectOr(content.body)[serviceResources[checked.data.endpoint].idField]),
    source: readSource(checked.data.source, document),
    document: table,
    fields: compiled,
    body: body.render,
    list: readList(checked.data.list, compiled, document),
    digest: shortDigestOf(toPlainValue(sent)),
  }
}

function readList(
  list: Record<string, string> | undefined,
  fields: readonly Field[],
  document: YamlDocument,
): ListColumn[] {
  if (list === undefined) return usualList(fields)
  return Object.entries(list).flatMap(([heading, from]) => {
    const read = compilePath(from)
    const isAmount = fields.some((field) => field.isAmount && field.from === from)
    if (typeof read === 'function') return [{ heading, read, isAmount }]
    document.report(['list', heading], read.message)
    return []
  })
}

/** The customer and the first amount. */
function usualList(fields: readonly Field[]): ListColumn[] {
  const customer = fields.find(({ name, from }) => /customer/i.test(name) && from !== null)
  const amount = fields.find(({ isAmount, from }) => isAmount && from !== null)
  const chosen = [customer, amount].filter((field) => field !== undefined)
  return chosen.map(({ from, read, isAmount }) => ({ heading: from ?? '', read, isAmount }))
}

/** Elsewhere, the id does not become the transaction's, so `probe` could not ask for it. */
const isSubmissionId = (value: unknown): boolean =>
  typeof value === 'string' && /^\$\{\s*submission\.id\s*\}$/.test(value)

/** Checks only that the query contains $1. */
function readSource(text: string | undefined, document: YamlDocument): SourceQuery | null {
  if (text === undefined) return null
  const sql = text.replace(/[\s;]+$/, '')
  if (!/\$1(?!\d)/.test(sql))
    document.report(['source'], 'the query must select the ids in $1, for example: where s.id = any($1)')
  return { sql, file: document.file }
}

function readDocumentTable(content: PayloadObject, document: YamlDocument): DocumentTable | null {
  const value = content.document
  if (value === undefined) return null
  const checked = documentSchema.safeParse(toPlainValue(value))
  if (!checked.success) {
    report(checked.error, ['document'], value, Object.keys(documentSchema.shape), document)
    return null
  }
  if (content.source === undefined)
    document.reportKey(['document'], '"document" needs "source": the query that reads what is sent')
  const { table, key, condition = null } = checked.data
  return { table, key: typeof key === 'string' ? [key] : key, condition }
}

function readField(name: string, exact: PayloadValue, document: YamlDocument): Field | null {
  const path = ['fields', name]
  if (!isObject(exact)) {
    document.report(path, `"${name}" must say where it comes from and what it is: { from: …, type: … }`)
    return null
  }
  const type = typeof exact.type === 'string' ? parseFieldTypeName(exact.type) : null
  if (type === null) {
    document.report([...path, 'type'], explainTypeProblem(exact.type))
    return null
  }
  const schema = fieldSchemas[type]
  const checked: z.ZodSafeParseResult<FieldSpec> = schema.safeParse(toPlainValue(exact))
  if (checked.success) return compileField(name, checked.data, exact, document)
  report(checked.error, path, exact, Object.keys(schema.shape), document)
  return null
}

const fieldOptions = new Set(Object.values(fieldSchemas).flatMap((schema) => Object.keys(schema.shape)))

function report(
  error: z.ZodError,
  path: YamlPath,
  value: PayloadValue,
  keys: readonly string[],
  document: YamlDocument,
): void {
  const optionsElsewhere = keys.includes('from') ? fieldOptions : new Set<string>()
  for (const issue of error.issues) {
    for (const { isAboutKey, path: within, message } of explainSchemaIssue(issue, value, keys, optionsElsewhere)) {
      if (isAboutKey) document.reportKey([...path, ...within], message)
      else document.report([...path, ...within], message)
    }
  }
}

function objectOr(value: PayloadValue | undefined): PayloadObject {
  return value !== undefined && isObject(value) ? value : {}
}
