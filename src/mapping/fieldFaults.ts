import type { FieldFault } from '../model.ts'
import type { FieldError } from './mapping.ts'

/** What may be said of the errors where everybody reads: each field, and the kind of its mistake as one word. */
export function fieldFaults(errors: readonly Pick<FieldError, 'field' | 'message'>[]): FieldFault[] {
  return errors.map(({ field, message }) => ({
    field,
    kind: kinds.find(([beginning]) => beginning.test(message))?.[1] ?? 'invalid',
  }))
}

/** Beginnings of messages of ours, and the word for the log: the messages themselves quote what the record holds. */
const kinds: readonly (readonly [beginning: RegExp, kind: string])[] = [
  [/^is missing$/, 'missing'],
  [/^is null$/, 'null'],
  [/^is empty/, 'empty'],
  [/^is not in the lookup table/, 'not_in_lookup'],
  [/^has \d+ characters|^is longer than/, 'too_long'],
  [/^is not one of/, 'not_one_of'],
  [/^is not a uuid/, 'no_uuid'],
  [/^is neither true nor false/, 'no_boolean'],
  [/^is not a whole number/, 'no_integer'],
  [/^is beyond 64 bits|^has .*digits? before the point/, 'too_large'],
  [/^has .*decimals?, /, 'too_many_decimals'],
  [/^is not a plain number/, 'no_number'],
  [/^is not an? (ISO|date)|^is outside the years|^happens twice|^does not exist in/, 'no_datetime'],
  [/^is not JSON/, 'no_json'],
  [/^is (text|true|false|a number|an array|an object), /, 'wrong_type'],
  [/^no mapping file/, 'no_mapping'],
]
