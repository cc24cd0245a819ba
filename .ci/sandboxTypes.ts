import { z } from 'zod'
import { optionsSchema } from '../src/sandbox/sandboxSettings.ts'
import { scenarioSchema } from '../src/sandbox/scenario/scenarioSchema.ts'

/**
 * The types of a sandbox's options, printed from their schemas. The compiler would print zod's types, and the package
 * has no zod.
 *
 * @returns the text of scenarioSchema.d.ts
 */
export function printSandboxTypes(): string {
  const { scenario: _, ...options } = optionsSchema.shape
  return `${exported('ScenarioInput', scenarioSchema, 'input')}
${exported('Scenario', scenarioSchema, 'output')}
${exported('Options', z.strictObject(options), 'input')}
export type SandboxOptions = Options & { scenario?: string | ScenarioInput | undefined }
`
}

function exported(name: string, schema: z.ZodType, io: 'input' | 'output'): string {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    target: 'draft-7',
    io,
    unrepresentable: 'any',
    reused: 'inline',
  })
  return `export type ${name} = ${typeOf(json as JsonSchema)}`
}

interface JsonSchema {
  type?: string | readonly string[]
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly JsonSchema[]
  oneOf?: readonly JsonSchema[]
  items?: JsonSchema
  properties?: Readonly<Record<string, JsonSchema>>
  required?: readonly string[]
  additionalProperties?: boolean | JsonSchema
  description?: string
}

/** @throws Error for a schema that it cannot print */
function typeOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives !== undefined) return alternatives.map(typeOf).join(' | ')
  const { type } = schema
  if (Array.isArray(type)) return type.map((each) => typeOf({ ...schema, type: each })).join(' | ')
  switch (type) {
    case undefined:
      return 'unknown'
    case 'integer':
      return 'number'
    case 'string':
    case 'number':
    case 'boolean':
    case 'null':
      return type
    case 'array':
      return `readonly (${typeOf(schema.items ?? {})})[]`
    case 'object':
      return objectType(schema)
  }
  throw new Error(`no type for ${JSON.stringify(schema)}`)
}

function objectType({ properties = {}, required = [], additionalProperties }: JsonSchema): string {
  const fields = Object.entries(properties).map(([name, property]) => {
    const comment = property.description === undefined ? '' : `/** ${property.description} */ `
    const isRequired = required.includes(name)
    return `${comment}${JSON.stringify(name)}${isRequired ? '' : '?'}: ${typeOf(property)}${isRequired ? '' : ' | undefined'}`
  })
  if (typeof additionalProperties === 'object') fields.push(`[name: string]: ${typeOf(additionalProperties)}`)
  return `{ ${fields.join('; ')} }`
}
