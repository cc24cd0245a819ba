/** The text of a form's field, or of an address's; undefined where it is empty. One that came twice counts as left out: nobody knows which was meant. */
export function formText(fields: unknown, name: string): string | undefined {
  return textAsTyped(fields, name).trim() || undefined
}

/** The same with the white space around it; '' where it was left out. */
export function textAsTyped(fields: unknown, name: string): string {
  const value = (fields as Record<string, unknown> | null | undefined)?.[name]
  return typeof value === 'string' ? value : ''
}
