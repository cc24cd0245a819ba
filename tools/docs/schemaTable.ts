/** What is used of a JSON Schema. */
export interface SchemaNode {
  description?: string
  properties?: Record<string, SchemaNode>
  anyOf?: SchemaNode[]
  additionalProperties?: SchemaNode | boolean
  enum?: string[]
}

/** A table of all keys, with the keys inside of them as `key.inner`. Keys of one meaning share a row. */
export function schemaTable(schema: SchemaNode): string {
  const meanings = new Map<string, string>()
  addKeys(meanings, schema, '')
  const rows = [...Map.groupBy(meanings.keys(), (key) => meanings.get(key) ?? '')]
  return [
    '| key | means |',
    '|---|---|',
    ...rows.map(([means, keys]) => `| ${keys.map((key) => `\`${key}\``).join(', ')} | ${means} |`),
  ].join('\n')
}

/** Adds a key of several forms once, with the first description. */
function addKeys(meanings: Map<string, string>, schema: SchemaNode, prefix: string): void {
  for (const [name, node] of Object.entries(schema.properties ?? {})) {
    const key = `${prefix}${name}`
    meanings.set(key, meanings.get(key) || meaningOf(node))
    for (const form of formsOf(node)) addKeys(meanings, form, `${key}.`)
    if (typeof node.additionalProperties === 'object')
      for (const form of formsOf(node.additionalProperties)) addKeys(meanings, form, `${key}.COLUMN.`)
  }
}

function formsOf(node: SchemaNode): SchemaNode[] {
  return [node, ...(node.anyOf ?? [])]
}

function meaningOf({ description = '', enum: values }: SchemaNode): string {
  const listed = values ? `${values.map((value) => `\`${value}\``).join(', ')}.` : ''
  return [description.replaceAll('|', '\\|'), listed].filter(Boolean).join(' ')
}
