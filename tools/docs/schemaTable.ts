/** The parts of a JSON Schema that we use. */
export interface SchemaNode {
  description?: string
  properties?: Record<string, SchemaNode>
  anyOf?: SchemaNode[]
  additionalProperties?: SchemaNode | boolean
  enum?: string[]
}

/** Returns a table of all keys, with nested keys as `key.inner`. Keys with the same meaning share a row. */
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

/** Adds keys. A key that has several forms is added once, with its first description. */
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
