import pg from 'pg'
import { quoteIdentifier } from '../postgres/database.ts'
import type { Column, TableShape } from './inspectTable.ts'

/** A column of the outbox row, which has the alias o in all statements. */
export const column = (name: string): string => `o.${quoteIdentifier(name)}`
export const literal = pg.escapeLiteral
export const literals = (values: Iterable<string>): string => [...values].map(literal).join(', ')

export function columnOf(shape: TableShape, name: string): Column {
  const found = shape.columns.get(name)
  if (found === undefined) throw new Error(`the column ${name} was not inspected`)
  return found
}

/** The oids of a table and of those of its partitions, a query. */
export const tableAndPartitions = (qualified: string): string =>
  `select ${literal(qualified)}::regclass::oid union all select relid::oid from pg_partition_tree(${literal(qualified)}::regclass)`

/** A time in UTC as ISO 8601 text with microseconds. */
export const iso = (utc: string) => `to_char(${utc}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
/** For columns that count since 1970. */
export const unitsPerSecond = { seconds: 1, milliseconds: 1_000, microseconds: 1_000_000 }
