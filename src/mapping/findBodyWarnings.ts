import { type BodyRule, serviceResources } from '../resources.ts'
import { isRecord } from '../yaml/exactJson.ts'
import { didYouMeanHint } from '../yaml/nearestWord.ts'
import type { Field, Mapping } from './mapping.ts'

/**
 * Finds what the service may refuse in a mapping's requests (docs/reference/interface.md, 2.2 and 2.6). These are only
 * warnings, because the interface does not show all rules.
 */
export function findBodyWarnings({ endpoint, fields, body }: Mapping): string[] {
  const { body: rules, section } = serviceResources[endpoint]
  const values = fields.map((_, i) => JSON.stringify(`${placeholder}${i}${placeholder}`))
  const asks = `the service asks for it (docs/reference/interface.md, ${section})`
  return checkMembers({ fields, asks }, rules, JSON.parse(body(values, anyId) ?? '{}'), '')
}

interface Inquiry {
  fields: readonly Field[]
  asks: string
}

/** Encloses a field's index, which stands for the field's value. No mapping file contains this character. */
const placeholder = '\u0000'
const anyId = '00000000-0000-4000-8000-000000000000'

function checkMembers(
  inquiry: Inquiry,
  rules: Readonly<Record<string, BodyRule>>,
  members: Readonly<Record<string, unknown>>,
  path: string,
): string[] {
  const strangers = Object.keys(members).filter((name) => !Object.hasOwn(rules, name))
  return Object.entries(rules).flatMap(([name, rule]) =>
    Object.hasOwn(members, name)
      ? checkPart(inquiry, rule, members[name], `${path}${name}`)
      : [`${path}${name} is not in the body, and ${inquiry.asks}${didYouMeanHint(name, strangers)}`],
  )
}

function checkPart(inquiry: Inquiry, rule: BodyRule, value: unknown, at: string): string[] {
  const index =
    typeof value === 'string' ? new RegExp(`^${placeholder}(\\d+)${placeholder}$`).exec(value)?.[1] : undefined
  const field = index === undefined ? undefined : inquiry.fields[Number(index)]
  if (field === undefined) return checkValue(inquiry, rule, value, at)
  const { name, from, required, constantOrDefault, spec } = field
  const known = knownValues(field)
  const fixed = [...new Set([...(known ?? []), ...(constantOrDefault === null ? [] : [constantOrDefault])])]
  return [
    ...(required || constantOrDefault !== null
      ? []
      : [`${at} is left out if the payload has no ${from}, and ${inquiry.asks}: make ${name} required`]),
    ...(known !== null || fits(rule, field) ? [] : [`${at} is ${name} (${spec.type}), and ${wanted(rule)}`]),
    ...fixed.flatMap((json) => checkValue(inquiry, rule, JSON.parse(json), at)),
  ]
}

/** Null if the field can have any value. */
function knownValues({ from, lookup, spec }: Field): string[] | null {
  if (from === null) return []
  if (lookup !== null) return [...lookup.values()]
  return spec.type === 'enum' ? (spec.values ?? []).map((value) => JSON.stringify(value)) : null
}

function fits(rule: BodyRule, { spec: { type, maxLength, as } }: Field): boolean {
  if (rule.kind === 'object') return false
  if (rule.kind === 'array' || rule.kind === 'uuid') return type === rule.kind
  if (rule.values !== null || type === 'array' || type === 'boolean') return false
  if (/^(integer|decimal)/.test(type) && as === undefined) return false
  return rule.lengthMax === null || (type === 'string' && maxLength !== undefined && maxLength <= rule.lengthMax)
}

function checkValue(inquiry: Inquiry, rule: BodyRule, value: unknown, at: string): string[] {
  if (rule.kind === 'object' && isRecord(value)) return checkMembers(inquiry, rule.members, value, `${at}.`)
  if (rule.kind === 'array' && Array.isArray(value)) return []
  if (typeof value !== 'string' || rule.kind === 'object' || rule.kind === 'array')
    return [`${at} has the wrong kind, and ${wanted(rule)}`]
  if (value.includes(placeholder))
    return rule.kind === 'text' && rule.values === null && rule.lengthMax === null
      ? []
      : [`${at} is put together of several parts, and ${wanted(rule)}`]
  if (rule.kind === 'uuid' ? isUuid.test(value) : isTextTaken(rule, value)) return []
  const meant = rule.kind === 'text' && rule.values !== null ? didYouMeanHint(value, rule.values) : ''
  return [`${at} can be "${value}", and ${wanted(rule)}${meant}`]
}

const isUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

const isTextTaken = ({ values, lengthMax }: Extract<BodyRule, { kind: 'text' }>, text: string) =>
  (values === null || values.includes(text)) && (lengthMax === null || [...text].length <= lengthMax)

function wanted(rule: BodyRule): string {
  if (rule.kind === 'object') return 'the service takes an object'
  if (rule.kind === 'array') return 'the service takes a list (type: array)'
  if (rule.kind === 'uuid') return 'the service takes a uuid (type: uuid)'
  if (rule.values !== null) return `the service takes ${rule.values.join(', ')} (type: enum)`
  if (rule.lengthMax === null) return 'the service takes text'
  return `the service takes text of at most ${rule.lengthMax} characters (type: string, maxLength: ${rule.lengthMax})`
}
