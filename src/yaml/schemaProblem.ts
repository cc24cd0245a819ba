import type { z } from 'zod'
import { isExactNumber, isObject, nameJsonKind, type PayloadValue, quoteForMessage } from './exactJson.ts'
import { didYouMeanHint } from './nearestWord.ts'
import type { YamlPath } from './yamlDocument.ts'

/** A zod issue in our words. If `key` is true, the message is about the key at `path`, else about its value. */
export interface SchemaProblem {
  readonly path: YamlPath
  readonly isAboutKey: boolean
  readonly message: string
}

type Issue = z.core.$ZodIssue

/**
 * @param keys the keys that `value` may have
 * @param optionsElsewhere keys that only fields of other types may have
 */
export function explainSchemaIssue(
  issue: Issue,
  value: PayloadValue,
  keys: readonly string[],
  optionsElsewhere: ReadonlySet<string> = new Set(),
): SchemaProblem[] {
  const path = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
  const name = path.at(-1) ?? ''
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: [...path, key],
      isAboutKey: true,
      message: explainKey(key, keys, optionsElsewhere),
    }))
  }
  if (issue.code === 'invalid_key') {
    const message = `"${name}" cannot be a field's name: letters, digits, _ and -, not beginning with a digit`
    return [{ path, isAboutKey: true, message }]
  }
  const found = valueAt(value, path)
  const part = typeof name === 'number' ? `item ${name + 1}` : `"${name}"`
  const subject = path.length === 0 ? 'the file' : part
  if (found === undefined)
    return [{ path, isAboutKey: false, message: `${subject} is missing${expectation(issue, ': ')}` }]
  return [{ path, isAboutKey: false, message: `${subject} ${explainValue(issue, found)}` }]
}

function explainKey(key: string, keys: readonly string[], optionsElsewhere: ReadonlySet<string>): string {
  if (optionsElsewhere.has(key)) return `"${key}" does not go with this type`
  return `unknown key ${quoteForMessage(key)}${didYouMeanHint(key, keys) || `: known are ${keys.join(', ')}`}`
}

function explainValue(issue: Issue, found: PayloadValue): string {
  if (issue.code === 'invalid_type') {
    const kind = isExactNumber(found) && issue.expected === 'int' ? found.rawJSON : nameJsonKind(found)
    return `must be ${kindWord(issue.expected)}, and is ${kind}`
  }
  if (issue.code === 'invalid_value' && typeof found === 'string') {
    const values = issue.values.map(String)
    return `must be ${values.join(' or ')}, and is ${quoteForMessage(found)}${didYouMeanHint(found, values)}`
  }
  if (issue.code === 'invalid_value')
    return `must be ${issue.values.map(String).join(' or ')}, and is ${nameJsonKind(found)}`
  if (issue.code === 'too_small')
    return issue.origin === 'number' || issue.origin === 'int' ? `must be ${least(issue)}` : 'is empty'
  if (issue.code === 'too_big') return `is too large: at most ${issue.maximum}`
  return issue.message
}

function least({ minimum, inclusive }: z.core.$ZodIssueTooSmall): string {
  return inclusive === false ? `more than ${minimum}` : `at least ${minimum}`
}

function expectation(issue: Issue, before: string): string {
  if (issue.code === 'invalid_value') return `${before}${issue.values.map(String).join(' or ')}`
  return issue.code === 'invalid_type' ? `${before}${kindWord(issue.expected)}` : ''
}

const kindMessage: Record<string, string> = {
  string: 'text (quote it if it looks like a number)',
  boolean: 'true or false',
  array: 'a list',
  record: 'keys with values',
  object: 'keys with values',
  int: 'a whole number',
  number: 'a whole number',
}

function kindWord(expected: string): string {
  return kindMessage[expected] ?? expected
}

function valueAt(value: PayloadValue, path: YamlPath): PayloadValue | undefined {
  let at: PayloadValue | undefined = value
  for (const step of path) {
    if (Array.isArray(at) && typeof step === 'number') at = at[step]
    else if (at !== undefined && isObject(at) && Object.hasOwn(at, step)) at = at[String(step)]
    else return undefined
  }
  return at
}
