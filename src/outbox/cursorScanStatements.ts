import { isTypeOfOtherInstancesSql, type ScannedRow } from './keyOrder.ts'
import type { SeenRow } from './ledgerMemory.ts'
import { type RowExpressions, typeCountsSql } from './rowExpressions.ts'

export interface PageRow extends SeenRow, ScannedRow {
  position: string[]
  /** The row's place among the page's rows of its key. */
  placeInKey: number
  settled: boolean | null
}

export type NamedRow = Omit<PageRow, 'placeInKey' | 'settled'>

export interface KeyedRow extends NamedRow {
  key: string | null
}

export interface EarlierRow extends SeenRow {
  keyHash: string
  position: string[]
}

export function cursorScanStatements(rows: RowExpressions) {
  const { from, waits, key, keyHash, type, seen, id, idType, exactIdType, idText, sort, order, orderInKey } = rows
  const bounds = (first: number) => sort.map(({ type }, i) => `$${first + i}::${type}`).join(', ')
  /** True after a position, and for all rows if the position's parameters are NULL. */
  const after = (first: number) => ` and ($${first}::${sort[0]?.type} is null or (${order}) > (${bounds(first)}))`
  const position = `array[${sort.map(({ expression }) => `(${expression})::text`).join(', ')}]`
  const scanOrder = sort.map(({ expression }) => expression)
  const named = (expressions: readonly string[], prefix: string) =>
    expressions.map((expression, i) => `${expression} as ${prefix}${i}`).join(', ')
  const namesOf = (expressions: readonly string[], prefix: string) => expressions.map((_, i) => prefix + i).join(', ')
  return {
    page: `
    select "outboxId", type, created, "keyHash", excepted, "leftType", position, settled,
      row_number() over (partition by "keyHash" order by ${namesOf(orderInKey, 'k')})::int as "placeInKey"
    from (
      select ${seen}, ${type} as type, ${keyHash} as "keyHash",
        ${key} = any($3::text[]) as excepted, case when ${isTypeOfOtherInstancesSql(type, 4)} then ${type} end as "leftType",
        ${position} as position,
        ${sort[0]?.expression} <= $2::${sort[0]?.type} as settled,
        ${named(scanOrder, 's')}, ${named(orderInKey, 'k')}
      from ${from} where ${waits}${after(6)} order by ${order} limit $1
    ) page order by ${namesOf(scanOrder, 's')}`,
    /** Selects the waiting rows of the keys in $2 after a position (excluded) up to another (included). */
    earlierOfKeys: `
    select ${idText} as "outboxId", null as created, ${keyHash} as "keyHash", ${position} as position
    from ${from} where ${waits}${after(3)} and (${order}) <= (${bounds(sort.length + 3)})
      and ${keyHash} = any($2::bigint[]) order by ${order} limit $1`,
    /** Selects a captured id that the column's type writes differently than the ledger. */
    changedIds: `
    select was || ' as ' || id::${exactIdType}::text as change from unnest($1::${idType}[], $2::text[]) as captured(id, was)
    where id::${exactIdType}::text <> was collate "C" limit 1`,
    one: `select ${seen}, ${type} as type, ${key} as key, ${keyHash} as "keyHash", ${key} = any($2::text[]) as excepted, null as "leftType", ${position} as position
      from ${from} where ${waits} and ${id} = $1::${idType}`,
    any: `select from ${from} where ${waits}${after(1)} limit 1`,
    count: `select count(*)::float8 as n from ${from} where ${waits}${after(1)}`,
    types: typeCountsSql(from, type, `${waits}${after(2)}`),
  }
}
