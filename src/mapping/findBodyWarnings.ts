import { type BodyRule, serviceResources } from '../resources.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import type { Field, Mapping } from './mapping.ts'

/**
 * Finds what the service may refuse in a mapping's requests (docs/reference/interface.md, 2.2 and 2.6): missing fields,
 * long texts, unknown values. They are only warnings, because the interface does not show everything.
 */
export function findBodyWarnings(mapping: Mapping): string[] {
  const { body, section } = serviceResources[mapping.endpoint]
  const inquiry = { fields: mapping.fields, asks: `the service asks for it (docs/reference/interface.md, ${section})` }
  return checkMembers(inquiry, body, skeletonOf(mapping), '')
}

interface Inquiry {
  fields: readonly Field[]
  asks: string
}

/** Stands for a field's value, before the field's number. No file contains this character. */
const placeholder = '\u0000'
const anyId = '00000000-0000-4000-8000-000000000000'

function skeletonOf({ fields, body }: Mapping): unknown {
  const values = fields.map((_, i) => JSON.stringify(`${placeholder}${i}${placeholder}`))
  return JSON.parse(body(values, anyId) ?? '{}')
}

function checkMembers(
  inquiry: Inquiry,
  rules: Readonly<Record<string, BodyRule>>,
  value: unknown,
  path: string,
): string[] {
  const members = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  const strangers = Object.keys(members).filter((name) => !Object.hasOwn(rules, name))
  return Object.entries(rules).flatMap(([name, rule]) => {
    const at = `${path}${name}`
    if (!Object.hasOwn(members, name))
      return [`${at} is not in the body, and ${inquiry.asks}${didYouMean(name, strangers)}`]
    return checkPart(inquiry, rule, members[name], at)
  })
}

function checkPart(inquiry: Inquiry, rule: BodyRule, value: unknown, at: string): string[] {
  const field = fieldOf(inquiry, value)
  if (field === undefined) return checkFixed(inquiry, rule, value, at)
  const mayBeMissing =
    !field.required && field.fallback === null
      ? [`${at} is left out where the payload has no ${field.from}, and ${inquiry.asks}: make ${field.name} required`]
      : []
  const fixed = fixedValues(field)
  const wrong =
    fixed === null ? checkOpen(rule, field, at) : fixed.flatMap((each) => checkFixed(inquiry, rule, each, at))
  const fallback = fixed === null && field.fallback !== null ? JSON.parse(field.fallback) : undefined
  return [...mayBeMissing, ...wrong, ...(fallback === undefined ? [] : checkFixed(inquiry, rule, fallback, at))]
}

function fieldOf({ fields }: Inquiry, value: unknown): Field | undefined {
  if (typeof value !== 'string' || !value.startsWith(placeholder)) return undefined
  const [, index, after] = value.split(placeholder)
  return after === '' && value.split(placeholder).length === 3 ? fields[Number(index)] : undefined
}

function fixedValues({ from, lookup, fallback, spec }: Field): unknown[] | null {
  const ofFile = fallback === null ? [] : [fallback]
  if (from === null) return ofFile.map((json) => JSON.parse(json))
  if (lookup !== null) return [...new Set([...lookup.values(), ...ofFile])].map((json) => JSON.parse(json))
  if (spec.type === 'enum') return [...new Set([...(spec.values ?? []), ...ofFile.map((json) => JSON.parse(json))])]
  return null
}

/** Checks a constant, or a text that contains fields. */
function checkFixed(inquiry: Inquiry, rule: BodyRule, value: unknown, at: string): string[] {
  if (rule.kind === 'object')
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? checkMembers(inquiry, rule.members, value, `${at}.`)
      : [`${at} is ${kindOf(value)}, and the service takes an object`]
  if (rule.kind === 'array')
    return Array.isArray(value) ? [] : [`${at} is ${kindOf(value)}, and the service takes a list`]
  if (typeof value !== 'string') return [`${at} is ${kindOf(value)}, and the service takes text`]
  if (value.includes(placeholder)) return checkComposed(rule, at)
  if (rule.kind === 'uuid') return isUuid(value) ? [] : [`${at} can be "${value}", which is not a uuid`]
  const { values, lengthMax } = rule
  if (values !== null && !values.includes(value))
    return [`${at} can be "${value}", and the service takes ${listed(values)}${didYouMean(value, values)}`]
  const length = [...value].length
  if (lengthMax !== null && length > lengthMax)
    return [`${at} can be "${value}", which has ${length} characters, and the service takes ${lengthMax} at most`]
  return []
}

function checkComposed(rule: Extract<BodyRule, { kind: 'uuid' | 'text' }>, at: string): string[] {
  if (rule.kind === 'uuid') return [`${at} is put together of several parts, and the service takes a uuid`]
  if (rule.values !== null)
    return [`${at} is put together of several parts, and the service takes ${listed(rule.values)}`]
  if (rule.lengthMax === null) return []
  return [`${at} is put together of several parts, and the service takes ${rule.lengthMax} characters at most`]
}

function checkOpen(rule: BodyRule, { name, spec }: Field, at: string): string[] {
  const { type, maxLength, as } = spec
  if (rule.kind === 'object') return [`${at} is ${name}, of type ${type}, and the service takes an object`]
  if (rule.kind === 'array')
    return type === 'array' ? [] : [`${at} is ${name}, of type ${type}, and the service takes a list`]
  const isNumber = /^(integer|decimal)/.test(type)
  if (type === 'array' || type === 'boolean' || (isNumber && as === undefined))
    return [`${at} is ${name}, of type ${type}, and the service takes text${isNumber ? ': give it as: string' : ''}`]
  if (rule.kind === 'uuid')
    return type === 'uuid' ? [] : [`${at} is ${name}, of type ${type}: make it uuid, the service takes no other`]
  if (rule.values !== null)
    return [
      `${at} is ${name}, of type ${type}: make it enum with values: [${rule.values.join(', ')}], the service takes no other`,
    ]
  if (rule.lengthMax === null || (type === 'string' && maxLength !== undefined && maxLength <= rule.lengthMax))
    return []
  if (type !== 'string')
    return [`${at} is ${name}, of type ${type}, and the service takes ${rule.lengthMax} characters at most`]
  return [
    `${at} is ${name}, which may have ${maxLength ?? 'any number of'} characters, and the service takes ${rule.lengthMax}: give it maxLength: ${rule.lengthMax}`,
  ]
}

const isUuid = (text: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
const listed = (values: readonly string[]) => values.join(', ')

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : typeof value === 'string' ? 'text' : `a ${typeof value}`
}
