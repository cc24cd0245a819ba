import { quoteIdentifier } from '../../postgres/database.ts'
import type { CatalogTable } from './catalogTable.ts'

/** A name as a person writes it in SQL after an alias or a schema, where keywords need no quotes. */
export const quoteName = (name: string): string => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : quoteIdentifier(name))

export const quoteTable = ({ schema, name }: Pick<CatalogTable, 'schema' | 'name'>): string =>
  `${reserved.test(schema) ? quoteIdentifier(schema) : quoteName(schema)}.${quoteName(name)}`

const reserved =
  /^(all|analyse|and|any|asc|case|default|desc|do|end|group|in|limit|on|only|or|order|table|to|user|using|when)$/
