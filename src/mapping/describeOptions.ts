import type { z } from 'zod'
import { fieldSchemas, fileSchema } from './mappingSchema.ts'

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
