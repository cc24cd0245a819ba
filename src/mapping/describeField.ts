import type { Field } from './mapping.ts'

/** Describes in a few words how a field's value is made: its type and options. */
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
