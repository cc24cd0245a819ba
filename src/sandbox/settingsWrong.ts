import type { z } from 'zod'
import { didYouMean } from '../yaml/nearestWord.ts'

export class SettingsWrong extends Error {
  override name = 'SettingsWrong'
  /** Never empty. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

export function parseSettings<S extends z.ZodObject>(schema: S, given: unknown, within: string[] = []): z.output<S> {
  const parsed = schema.safeParse(given, { error: settingMessage })
  if (parsed.success) return parsed.data
  throw new SettingsWrong(parsed.error.issues.flatMap((issue) => sentences(issue, within, Object.keys(schema.shape))))
}

function sentences(issue: z.core.$ZodIssue, within: string[], known: readonly string[]): string[] {
  const path = [...within, ...issue.path].join('.')
  if (issue.code === 'unrecognized_keys' && issue.path.length === 0) {
    return issue.keys.map((key) => `${[...within, key].join('.')}: there is no such setting${didYouMean(key, known)}`)
  }
  return [path === '' ? issue.message : `${path}: ${issue.message}`]
}

const kinds: Record<string, string> = {
  boolean: 'true or false',
  number: 'a number',
  int: 'a whole number',
  string: 'text',
  array: 'a list',
  object: 'an object',
}

export function settingMessage(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${kinds[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `must be ${issue.values.map(String).join(' or ')}`
    case 'too_small':
      return isCounted(issue)
        ? 'must not be empty'
        : `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}`
    case 'too_big':
      return isCounted(issue) ? `must not be longer than ${issue.maximum}` : `must be at most ${issue.maximum}`
    case 'unrecognized_keys':
      return `there is no ${issue.keys.join(', ')} here`
    default:
      return undefined
  }
}

function isCounted({ origin }: { origin: string }): boolean {
  return origin === 'string' || origin === 'array'
}
