/** As the catalog has it, without quotes. */
export interface TableName {
  readonly schema: string | null
  readonly table: string
}

/** Reads TABLE, SCHEMA.TABLE, or either in the quotes that SQL would need. @returns null for what is neither */
export function readTableName(text: string): TableName | null {
  const found = /^(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^".]+)$/.exec(text.trim())
  if (found === null) return null
  const [, schema, table = ''] = found
  return { schema: schema === undefined ? null : unquote(schema), table: unquote(table) }
}

const unquote = (part: string) => (part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part)
