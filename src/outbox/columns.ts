import pg from 'pg'
import { quoteIdentifier } from '../postgres/database.ts'

export interface Column {
  /** For casts in comparisons: the base type below all domains, without a length, so that a cast changes no value. */
  readonly type: string
  /** For casts in writes: with length and precision, so that a text that is too long is cut. */
  readonly exactType: string
  /** For decisions: the SQL name of the base type. Do not cast to it: a cast to `character` cuts to one character. */
  readonly baseType: string
  /** The COLLATE clause of the column's collation, with which its index is used; empty for types without one. */
  readonly collateSql: string
  readonly notNull: boolean
}

export interface TableShape {
  /** Quoted, with its schema. */
  readonly qualified: string
  readonly columns: ReadonlyMap<string, Column>
  readonly hasSystemColumns: boolean
  /** True if statements on rows use the client's code or types, so that they may need the role's search path. */
  readonly hasCustomCode: boolean
}

export const prefixedColumnSql = (name: string): string => `o.${quoteIdentifier(name)}`
export const literalSql = pg.escapeLiteral
export const literalListSql = (values: Iterable<string>): string => [...values].map(literalSql).join(', ')

export function columnOf(shape: TableShape, name: string): Column {
  const found = shape.columns.get(name)
  if (found === undefined) throw new Error(`the column ${name} was not inspected`)
  return found
}

export const isJsonColumn = ({ baseType }: Column): boolean => /^jsonb?$/.test(baseType)

/** Joins `base.type` to pg_attribute a: the oid of the column's base type below all domains. */
export const baseTypeJoinSql = `cross join lateral (
      with recursive below as (
        select a.atttypid as type, typbasetype as base from pg_catalog.pg_type where oid operator(pg_catalog.=) a.atttypid
        union all select oid, typbasetype from below join pg_catalog.pg_type on oid operator(pg_catalog.=) base
      ) select type from below where base operator(pg_catalog.=) 0
    ) base`

/** Selects the oids of a table and of its partitions and inheriting tables, at any depth, as `id`. */
export const tableAndPartitionOidsSql = (qualifiedName: string): string =>
  `with recursive part as (
      select ${literalSql(qualifiedName)}::regclass::oid as id
      union select h.inhrelid from part join pg_inherits h on h.inhparent = part.id
    ) select id from part`

export const isoTimeSql = (utcTimeSql: string) => `to_char(${utcTimeSql}, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
export const timeUnitsPerSecond = { seconds: 1, milliseconds: 1_000, microseconds: 1_000_000 }

export const columnTextSql = (name: string, shape: TableShape): string =>
  isJsonColumn(columnOf(shape, name)) ? `(${prefixedColumnSql(name)} #>> '{}')` : `(${prefixedColumnSql(name)})::text`

/** @param timezone of the table's times without a time zone */
export function nowForColumnSql(shape: TableShape, name: string, timezone: string): string {
  const { baseType } = columnOf(shape, name)
  if (/^(bigint|numeric)$/.test(baseType)) return `(extract(epoch from clock_timestamp()) * 1000)::bigint`
  const local = `(clock_timestamp() at time zone ${literalSql(timezone)})`
  if (baseType === 'timestamp without time zone') return local
  return baseType === 'date' ? `${local}::date` : 'clock_timestamp()'
}
