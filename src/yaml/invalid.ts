/** `message` continues a sentence that begins with the field's name; quoted values in it are cut short. */
export interface Invalid {
  readonly kind: 'invalid'
  readonly message: string
}

export function invalid(message: string): Invalid {
  return { kind: 'invalid', message }
}
