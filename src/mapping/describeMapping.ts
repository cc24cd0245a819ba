import type { z } from 'zod'
import type { Field } from './mapping.ts'
import { fieldSchemas, fileSchema } from './mappingSchema.ts'

/** How a field's value is made of the client's, in a few words: its type, and what is done beside. Pure. */
export function describeField(field: Field): string {
  const { spec, from, trim, lookup, fallback, required } = field
  const parts = [
    spec.type,
    spec.maxLength === undefined ? null : `at most ${spec.maxLength} characters`,
    spec.values === undefined ? null : `one of ${spec.values.join(', ')}`,
    trim ? 'white space at both ends removed' : null,
    lookup === null ? null : `by a table of ${lookup.size}`,
    spec.round === undefined ? null : `rounded ${spec.round}`,
    spec.as === undefined ? null : 'sent as text',
    spec.type !== 'datetime' ? null : spec.timezone === undefined ? 'sent in UTC' : `from ${spec.timezone} to UTC`,
    fallback === null ? null : from === null ? `always ${fallback}` : `${fallback} where it is missing`,
    required ? 'required' : null,
  ]
  return parts.filter((part) => part !== null).join('; ')
}

/** Something that a mapping file can say. */
export interface DescribedOption {
  name: string
  /** As the JSON Schema has it. */
  description: string
  /** The types of a field that it goes with; null: it stands at the top of the file. */
  types: readonly string[] | null
}

/** What a mapping file can say, by the schema that editors check it by: of the file, then of a field. Pure. */
export function describeOptions(): DescribedOption[] {
  const ofFile = descriptionsOf(fileSchema).map(([name, description]) => ({ name, description, types: null }))
  const ofFields = Map.groupBy(
    Object.entries(fieldSchemas).flatMap(([type, schema]) =>
      descriptionsOf(schema).map(([name, description]) => ({ type, name, description })),
    ),
    ({ name }) => name,
  )
  return [
    ...ofFile,
    ...[...ofFields].map(([name, options]) => ({
      name,
      description: options[0]?.description ?? '',
      types: options.map(({ type }) => type),
    })),
  ]
}

const descriptionsOf = ({ shape }: { shape: Record<string, z.ZodType> }): [name: string, description: string][] =>
  Object.entries(shape).flatMap(([name, schema]) => {
    const description = schema.description ?? innerDescription(schema)
    return description === undefined ? [] : [[name, description]]
  })

/** `.optional()` after `.describe()` hides what was said. */
function innerDescription(schema: z.ZodType): string | undefined {
  return 'unwrap' in schema && typeof schema.unwrap === 'function' ? schema.unwrap().description : undefined
}
