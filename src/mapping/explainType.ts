import { nameKind, type PayloadValue, quote } from '../yaml/exactJson.ts'
import { didYouMean } from '../yaml/nearestWord.ts'
import { fieldSchemas } from './mappingSchema.ts'

const typeNames = Object.keys(fieldSchemas).map((name) => (name === 'decimal' ? 'decimal(10,2)' : name))

/** Says what to write where a field's type is missing or unknown. */
export function explainType(type: PayloadValue | undefined): string {
  const known = `one of ${typeNames.join(', ')}`
  if (type === undefined) return `"type" is missing: ${known}`
  if (typeof type !== 'string') return `"type" must be ${known}, and is ${nameKind(type)}`
  return `unknown type ${quote(type)}: ${known}${didYouMean(type, typeNames)}`
}
