import type { MetRow } from './chooseInLine.ts'
import { cutId, stays } from './claimByLock.ts'
import type { SeenRow } from './cursorStore.ts'
import type { RowExpressions } from './statements.ts'
import { typeCounts } from './typeCounts.ts'

/** A row of `page` and `pageAfter`. */
export interface PageRow extends SeenRow, MetRow {
  position: string[]
  settled: boolean | null
}

/** Rows at the position and just behind it that are compared with those that were taken there. */
const sampleMax = 20

/** All that a cursor scan asks of the table, by name. */
export function cursorScanStatements(
  from: string,
  { waits, key, line, type, stamp, createdAt, idType, idText, sort }: RowExpressions,
) {
  const expressions = sort.map(({ expression }) => expression)
  const order = expressions.join(', ')
  const idOf = expressions.at(-1)
  const seen = `${idText} as "outboxId", ${stamp} as stamp, ${createdAt} as "createdAt"`
  const after = (firstParameter: number) =>
    ` and (${order}) > (${sort.map(({ type }, i) => `$${firstParameter + i}::${type}`).join(', ')})`
  const upTo = ` and (${order}) <= (${sort.map(({ type }, i) => `$${i + 1}::${type}`).join(', ')})`
  const descending = expressions.map((each) => `${each} desc`).join(', ')
  const behind = (and: string) => `
    select ${seen}
    from ${from} where ${waits}${and} order by ${descending} limit ${sampleMax}`
  const page = (and: string) => `
    select ${seen}, ${line} as line,
      ${key} = any($3::text[]) as excepted, case when ${stays(type, 4)} then ${type} end as "leftType",
      array[${sort.map(({ expression }) => `(${expression})::text`).join(', ')}] as position,
      ${expressions[0]} <= $2::${sort[0]?.type} as settled
    from ${from} where ${waits}${and} order by ${order} limit $1`
  const any = (and: string) => `select from ${from} where ${waits}${and} limit 1`
  const count = (and: string) => `select count(*)::float8 as n from ${from} where ${waits}${and}`
  return {
    page: page(''),
    pageAfter: page(after(6)),
    behind: behind(upTo),
    behindSince: behind(`${upTo}${after(sort.length + 1)}`),
    one: `select ${seen} from ${from} where ${waits} and ${idOf} = $1::${idType}`,
    lines: `select distinct ${line} as line from ${from} where ${idOf} = any($1::${idType}[]) and ${key} is not null`,
    linesByText: `select distinct ${line} as line from ${from} where ${cutId(idText)} = any($1::text[]) and ${key} is not null`,
    any: any(''),
    anyAfter: any(after(1)),
    count: count(''),
    countAfter: count(after(1)),
    types: typeCounts(from, type, waits),
    typesAfter: typeCounts(from, type, `${waits}${after(2)}`),
  }
}
