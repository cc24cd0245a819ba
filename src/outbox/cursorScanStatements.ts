import { cutIdSql, type MetRow, staysSql } from './chooseInLine.ts'
import type { SeenRow } from './ledgerMemory.ts'
import { type RowExpressions, typeCountsSql } from './rowExpressions.ts'

/** A row of `page` and `pageAfter`. */
export interface PageRow extends SeenRow, MetRow {
  position: string[]
  settled: boolean | null
}

/** Rows at the position and just behind it that are compared with those that were taken there. */
const sampleMax = 20

/** All that a cursor scan asks of the table, by name. */
export function cursorScanStatements(rows: RowExpressions) {
  const { from, waits, key, line, type, seen, id, idType, idText, sort, order } = rows
  const after = (firstParameter: number) =>
    ` and (${order}) > (${sort.map(({ type }, i) => `$${firstParameter + i}::${type}`).join(', ')})`
  const upTo = ` and (${order}) <= (${sort.map(({ type }, i) => `$${i + 1}::${type}`).join(', ')})`
  const descending = sort.map(({ expression }) => `${expression} desc`).join(', ')
  const behind = (and: string) => `
    select ${seen}
    from ${from} where ${waits}${and} order by ${descending} limit ${sampleMax}`
  const page = (and: string) => `
    select ${seen}, ${line} as line,
      ${key} = any($3::text[]) as excepted, case when ${staysSql(type, 4)} then ${type} end as "leftType",
      array[${sort.map(({ expression }) => `(${expression})::text`).join(', ')}] as position,
      ${sort[0]?.expression} <= $2::${sort[0]?.type} as settled
    from ${from} where ${waits}${and} order by ${order} limit $1`
  const any = (and: string) => `select from ${from} where ${waits}${and} limit 1`
  const count = (and: string) => `select count(*)::float8 as n from ${from} where ${waits}${and}`
  return {
    page: page(''),
    pageAfter: page(after(6)),
    behind: behind(upTo),
    behindSince: behind(`${upTo}${after(sort.length + 1)}`),
    one: `select ${seen} from ${from} where ${waits} and ${id} = $1::${idType}`,
    lines: `select distinct ${line} as line from ${from} where ${id} = any($1::${idType}[]) and ${key} is not null`,
    linesByText: `select distinct ${line} as line from ${from} where ${cutIdSql(idText)} = any($1::text[]) and ${key} is not null`,
    any: any(''),
    anyAfter: any(after(1)),
    count: count(''),
    countAfter: count(after(1)),
    types: typeCountsSql(from, type, waits),
    typesAfter: typeCountsSql(from, type, `${waits}${after(2)}`),
  }
}
