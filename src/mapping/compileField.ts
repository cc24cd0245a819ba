import { isObject, type PayloadObject, type PayloadValue, writeJson } from '../yaml/exactJson.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'
import type { YamlDocument, YamlPath } from '../yaml/yamlDocument.ts'
import { compilePath } from './compilePath.ts'
import { chooseConverter, parseDecimalType } from './convert.ts'
import { isTimeZone } from './datetime.ts'
import type { ConvertValue, Field, ReadPath } from './mapping.ts'
import type { FieldSpec } from './mappingSchema.ts'

/**
 * Also converts default, constant and lookup values, so that a wrong value is an error of the file, not of a record.
 * @param spec accepted by its type's schema
 * @param exact its numbers keep their digits
 * @returns null if the entry has problems, which are then in `document`
 */
export function compileField(
  name: string,
  spec: FieldSpec,
  exact: PayloadObject,
  document: YamlDocument,
): Field | null {
  const path = ['fields', name]
  const problemsBefore = document.problems.length
  checkOptions(spec, path, document)
  if (document.problems.length > problemsBefore) return null
  const convert = chooseConverter(spec)
  return {
    name,
    from: spec.from ?? spec.path ?? null,
    read: readerOf(spec, path, document),
    required: spec.required ?? false,
    trim: spec.trim ?? false,
    lookup: lookupOf(exact.lookup, convert, [...path, 'lookup'], document),
    constantOrDefault: fallbackOf(exact, convert, path, document),
    spec,
    isAmount: parseDecimalType(spec.type) !== null,
    convert,
  }
}

const precisionMax = 100

function checkOptions(spec: FieldSpec, path: YamlPath, document: YamlDocument): void {
  const hasConstant = 'constant' in spec
  if (spec.from !== undefined && spec.path !== undefined)
    document.reportKey([...path, 'path'], '"path" and "from" are the same thing: write one of them')
  if (!hasConstant && spec.from === undefined && spec.path === undefined)
    document.reportKey(path, 'needs "from", the path in the payload, or "constant"')
  if (hasConstant) {
    for (const option of ['from', 'path', 'default', 'required', 'trim', 'lookup'] as const) {
      if (option in spec) document.reportKey([...path, option], `"${option}" has no meaning with "constant"`)
    }
  }
  const decimal = parseDecimalType(spec.type)
  if (
    decimal !== null &&
    (decimal.precision < 1 || decimal.precision > precisionMax || decimal.scale > decimal.precision)
  ) {
    const rule = `1 to ${precisionMax} digits in all, and no more decimals than digits`
    document.report([...path, 'type'], `"${spec.type}" is not possible: decimal(digits, decimals) takes ${rule}`)
  }
  if (spec.timezone !== undefined && !isTimeZone(spec.timezone)) {
    const hint = didYouMeanHint(spec.timezone, Intl.supportedValuesOf('timeZone'))
    document.report([...path, 'timezone'], `"${spec.timezone}" is not a time zone${hint || ' like Europe/Berlin'}`)
  }
}

function readerOf(spec: FieldSpec, path: YamlPath, document: YamlDocument): ReadPath {
  const option = spec.from === undefined ? 'path' : 'from'
  const from = spec[option]
  const read = from === undefined ? alwaysMissing : compilePath(from)
  if (typeof read === 'function') return read
  document.report([...path, option], read.message)
  return alwaysMissing
}

function alwaysMissing(): { kind: 'missing' } {
  return { kind: 'missing' }
}

function fallbackOf(
  exact: PayloadObject,
  convert: ConvertValue,
  path: YamlPath,
  document: YamlDocument,
): string | null {
  for (const option of ['constant', 'default']) {
    const value = exact[option]
    if (value !== undefined) return convertInFile(value, `"${option}"`, convert, [...path, option], document)
  }
  return null
}

function lookupOf(
  table: PayloadValue | undefined,
  convert: ConvertValue,
  path: YamlPath,
  document: YamlDocument,
): ReadonlyMap<string, string> | null {
  if (table === undefined || !isObject(table)) return null
  const entries = Object.entries(table)
  if (entries.length === 0) document.report(path, '"lookup" has no entry, so no value could be sent')
  return new Map(
    entries.map(([key, value]) => [
      key,
      convertInFile(value, `the lookup's "${key}"`, convert, [...path, key], document),
    ]),
  )
}

function convertInFile(
  value: PayloadValue,
  what: string,
  convert: ConvertValue,
  path: YamlPath,
  document: YamlDocument,
): string {
  const converted = value === null ? null : convert(value, writeJson(value))
  if (converted?.kind === 'value') return converted.json
  document.report(path, `${what} ${converted?.message ?? 'has no value'}`)
  return 'null'
}
