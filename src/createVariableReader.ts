import { readFileSync } from 'node:fs'
import type { z } from 'zod'

export type ValuesAcrossInstances =
  /** Instances should not differ. `outboxd status` reports differences. */
  | 'same: reported'
  /** Instances must not differ. A daemon with a different database, table or service does not start. */
  | 'same: refused'
  /** Instances may differ, for the reason given. */
  | `own: ${string}`

export interface Variable {
  instances: ValuesAcrossInstances
  schema: z.ZodType
  about: string
  shownDefault?: string
  /** The value is never printed, logged or quoted. NAME_FILE may name a file with the value. */
  secret?: boolean
}

/** An empty variable counts as not set, and so does an empty file of an optional secret. */
export type Environment = Record<string, string | undefined>

/** `problems` names every wrong variable, without the value of a secret. */
export class ConfigInvalid extends Error {
  override name = 'ConfigInvalid'
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(`the configuration has ${problems.length === 1 ? 'a mistake' : `${problems.length} mistakes`}`)
    this.problems = problems
  }
}

/** Leaves out a secret, and a URL, because a URL may contain a secret. */
function given(text: string | undefined, secret: boolean | undefined): string {
  return text === undefined || secret || /[@?#]/.test(text) ? '' : ` (given: ${JSON.stringify(text)})`
}

/** `done` throws all mistakes together. */
export function createVariableReader<V extends { readonly [N in keyof V]: Variable }>(variables: V, env: Environment) {
  type Name = keyof V & string
  type Value<N extends Name> = z.output<V[N]['schema']>
  const problems: string[] = []

  function value<N extends Name>(name: N): Value<N> {
    const { schema, secret, about }: Variable = variables[name]
    const problemsBefore = problems.length
    const text = secret ? secretText(name, schema.safeParse(undefined).success) : env[name] || undefined
    const parsed = schema.safeParse(text)
    // An unreadable file was reported already, so "is required" would mislead.
    if (!parsed.success && problems.length === problemsBefore)
      report(
        `${name} ${text === undefined ? 'is required' : parsed.error.issues[0]?.message}: ${about}${given(text, secret)}${readFrom(name, secret)}`,
      )
    return parsed.data as Value<N>
  }

  /** Reports a problem once, because a variable may be read twice. */
  function report(problem: string): void {
    if (!problems.includes(problem)) problems.push(problem)
  }

  /** Drops a byte order mark and white space at the end, as editors and `base64` add them. */
  function secretText(name: string, isOptional: boolean): string | undefined {
    const text = readSecretText(name)
      ?.replace(/^\uFEFF/, '')
      .trimEnd()
    if (text !== undefined && /[\p{Cc}\uFFFD]/u.test(text))
      problems.push(
        `${name} must be one line of UTF-8 text, but it has a line break, another control character or a byte that is not UTF-8${readFrom(name, true)}`,
      )
    return isOptional ? text || undefined : text
  }

  function readSecretText(name: string): string | undefined {
    const path = env[`${name}_FILE`]
    if (!path) return env[name] || undefined
    if (env[name]) problems.push(`${name} and ${name}_FILE are both set: set one of them`)
    // A text that does not look like a path may be the secret itself.
    const shown = /^[./]/.test(path) ? path : 'the file: this variable must be a path, not the secret itself'
    return contents(`${name}_FILE`, path, shown)
  }

  function readFrom(name: string, secret: boolean | undefined): string {
    return secret && env[`${name}_FILE`] ? `; it was read from ${env[`${name}_FILE`]}` : ''
  }

  function contents(name: string, path: string, shown = path): string | undefined {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      problems.push(`${name}: cannot read ${shown} (${(error as NodeJS.ErrnoException).code})`)
      return undefined
    }
  }

  return {
    value,
    fileText(name: Name): string | null {
      const path: unknown = value(name)
      return typeof path === 'string' ? (contents(name, path) ?? null) : null
    },
    mistake(sentence: string): void {
      problems.push(sentence)
    },
    together(one: Name, other: Name): void {
      if (!env[one] !== !env[other]) problems.push(`${one} and ${other} belong together: set both or neither`)
    },
    done<T>(config: T): T {
      if (problems.length > 0) throw new ConfigInvalid(problems)
      return config
    },
  }
}
